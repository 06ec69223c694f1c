"""DEFINE, the lower floor: what each kind of object looks like, declared once and pure; writing stands above.

`base/` has what every declaration is made of. Each other module declares a kind: `traffic/` what clients ask for and
who answers, `clouds/` accounts at clouds and addresses, `platform/` tenants and machines, `operations/` what runs
against them.
"""
