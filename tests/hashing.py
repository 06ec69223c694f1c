"""How tests keep passwords: as the product does, with so little work that nobody waits for it."""

from __future__ import annotations

from django.contrib.auth.hashers import ScryptPasswordHasher


class QuickScrypt(ScryptPasswordHasher):
    """The product's hasher at a thousandth of its cost; a test of the cost asks for the true one."""

    work_factor = 2**4


class SomeScrypt(ScryptPasswordHasher):
    """At an eighth of its cost: more work than everything else that a sign-in does."""

    work_factor = 2**11
