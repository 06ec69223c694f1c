"""COMPILE, the input: frozen definitions of fleets and of stacks."""
