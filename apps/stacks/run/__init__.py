"""PUSH to clouds, the run: compile, plan, apply, finish, and recover what a dead worker left."""
