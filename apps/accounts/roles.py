"""What a role is called; rows keep one word per rank, people read the word of their kind of account."""

from __future__ import annotations

from apps.accounts.models import Account, Membership

WORDS = {
    Account.Kind.OPERATOR: {"admin": "admin", "editor": "operator", "viewer": "viewer"},
    Account.Kind.CUSTOMER: {"admin": "owner", "editor": "editor", "viewer": "viewer"},
}


def word_of(kind: str, role: str) -> str:
    """The role as people of this kind of account say it: admin, operator, viewer or owner, editor, viewer."""
    return WORDS[Account.Kind(kind)][role]


def role_of(kind: str, word: str) -> Membership.Role | None:
    """The role that a word means in this kind of account, None for a word that means none there."""
    found = [role for role, said in WORDS[Account.Kind(kind)].items() if said == word]
    return Membership.Role(found[0]) if found else None
