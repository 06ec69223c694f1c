"""Lines of a report without the secrets that stood in them: passwords, keys, values of headers that prove who asks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from apps.importing.contract import Import
from apps.importing.verdicts import LineReport

HIDDEN = "…"
IN_KEY = "This line belongs to a private key; send keys as files of their own."
# Shorter values are words of the file as well (`on`, `1`), and hiding them would hide what the report says.
SHORTEST = 4
# From where a word begins, and never shortened again: each further way to read it would multiply the work of a line.
_NAMED = (
    r"(?<![\w.-])(?>[\w.-]*?(?:authorization|cookie|token|secret|passw|passphrase|api-?_?key|credential|session)"
    r"[\w.-]*)"
)
_SECRETS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^\s*(?:preset|set)env\s+\S+\s+(?P<secret>.+)$",
        r"\b(?:insecure-)?password\s+(?P<secret>\S+)",
        r"\bstats\s+auth\s+[^\s:]*:(?P<secret>.+)$",
        rf"(?:\b|_)(?:set|add|replace)[-_]header\s+{_NAMED}\s+(?P<secret>.+)$",
        rf"\bset\s+\${_NAMED}\s+(?P<secret>.+)$",
        rf"\bif\s+\(?\${_NAMED}\s+!?[=~]\S*\s+(?P<secret>.+)$",
        rf"\b(?:fastcgi|scgi|uwsgi)_param\s+{_NAMED}\s+(?P<secret>.+)$",
        r"\bsecure_link(?:_secret|_md5)\s+(?P<secret>.+)$",
        rf"\bhdr\s+[\"']?{_NAMED}[\"']?\s+(?P<secret>.+)$",
        rf"(?:{_NAMED})[\"']?\s*:\s*(?:\\\s)*(?P<secret>[^\s:].*)$",
        rf"\w\(\s*[\"']?{_NAMED}[\"']?[^)]*\)\s+(?P<secret>.+)$",
        r"\b(?:hmac|jwt_verify\w*|aes_\w+)\((?P<secret>[^)]*)\)",
        r"\b(?:basic|bearer)(?:\\?\s)+(?P<secret>[\w+/=.~-]+)",
        r"://[^\s/:@]*:(?P<secret>[^\s/@]+)@",
    )
)
# Entries of a map of nginx, whose keys prove who asks.
_OF_SECRETS = re.compile(rf"\bmap \${_NAMED}", re.IGNORECASE)
_KEY_BEGINS, _KEY_ENDS = re.compile(r"-----BEGIN [A-Z ]*KEY"), re.compile(r"-----END ")


def without_secrets(found: Import, said: Iterable[str] = ()) -> Import:
    """The same import with no secret in its report and questions; `said` are passwords and variables that were sent."""
    known = {value for value in said if len(value) >= SHORTEST}
    lines, in_key = [], False
    for line in found.report:
        in_key = in_key or bool(_KEY_BEGINS.search(line.text))
        lines.append(replace(line, text=HIDDEN, reasons=(IN_KEY,)) if in_key else _masked(line, known))
        in_key = in_key and not _KEY_ENDS.search(line.text)
    needs = tuple(_without(need, known) for need in found.needs)
    return replace(found, report=tuple(lines), needs=needs)


def _masked(line: LineReport, known: set[str]) -> LineReport:
    """The same of its section: that of a line in an `if` of nginx is what is compared there."""
    text, section, secrets = line.text, line.section, set(known)
    if _OF_SECRETS.search(section):
        text = HIDDEN
    for pattern in _SECRETS:
        text, section = (pattern.sub(lambda match: _hidden(match, secrets), each) for each in (text, section))
    reasons = tuple(_without(reason, secrets) for reason in line.reasons)
    return replace(line, text=_without(text, known), section=_without(section, known), reasons=reasons)


def _hidden(match: re.Match[str], secrets: set[str]) -> str:
    """The match with three dots for its secret, the words of which are noted."""
    secret = match["secret"]
    secrets.update(word.strip("\"'\\") for word in secret.split())
    start, end = (index - match.start() for index in match.span("secret"))
    return match[0][:start] + HIDDEN + match[0][end:]


def _without(text: str, secrets: set[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text
