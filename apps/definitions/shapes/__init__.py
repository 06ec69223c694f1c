"""DEFINE, the lower floor: what each kind of object looks like, declared once and pure; writing stands above.

`base/` has what every declaration is made of; each other module declares one kind.
"""
