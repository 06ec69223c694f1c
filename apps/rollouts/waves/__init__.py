"""PUSH: a change reaches a few nodes first, and more while those serve traffic as well as before."""
