"""Userlists as names and passwords; of hashes the password must be said, since ours are hashed in another way."""

from __future__ import annotations

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import authentication
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line

SHORTEST = 8
NO_GROUPS = "Every user of the list is let in; groups are not told apart."


def users_of(context: Context, name: str) -> list[tuple[str, str]] | None:
    """Names with passwords, None where there is no such list. An unknown one is empty, which keeps the stored one."""
    section = next((each for each in context.configuration.of_kind("userlist") if each.name == name), None)
    if section is None:
        return None
    context.ledger.mapped(section.header)
    found = []
    for line in section.lines:
        if line.keyword == "user" and len(line.words) > 1:
            user = _user(context, line)
            found += [user] if user else []
        elif line.keyword == "group":
            context.ledger.differs(line, NO_GROUPS)
    return found or None


def _user(context: Context, line: Line) -> tuple[str, str] | None:
    name, words = line.words[1], line.words
    try:
        authentication.user_name(name)
    except GrammarError as error:
        context.ledger.impossible(line, error.message)
        return None
    password = context.options.passwords.get(name, "")
    if not password and "insecure-password" in words[:-1]:
        password = words[words.index("insecure-password") + 1]
    if not password:
        context.ledger.differs(line, f"The file has only a hash; say the password with --password {name}=….")
        context.need(f"The password of user {name} (--password {name}=…).")
    elif len(password) < SHORTEST:
        context.ledger.differs(
            line, f"A password has at least {SHORTEST} characters; say one with --password {name}=…."
        )
        context.need(f"A longer password of user {name} (--password {name}=…).")
        password = ""
    else:
        context.ledger.mapped(line)
    return name, password
