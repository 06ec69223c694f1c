"""COMPILE, the one table of what each target can do with each field: for checks, forms and the documentation."""
