"""COMPILE + CHECK: frozen definitions in, the exact files of a target out; pure Python, no input or output."""
