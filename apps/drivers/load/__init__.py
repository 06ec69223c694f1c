"""LOAD, the hands that make traffic for capacity tests: in processes of their own that stop by themselves."""
