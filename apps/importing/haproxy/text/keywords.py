"""What the keyword of a line is, so that no line is passed over: known by name, or said to be unknown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from apps.importing.haproxy.text.sections import PROXIES, Configuration, Section
from apps.importing.haproxy.text.tables import process, proxies
from apps.importing.haproxy.text.tables.classes import Fact, Kind
from apps.importing.verdicts import Ledger, Line, Verdict

RULES = {
    "http-request": proxies.HTTP_RULES,
    "http-response": proxies.HTTP_RULES,
    "http-after-response": proxies.HTTP_RULES,
    "tcp-request": proxies.TCP_RULES,
    "tcp-response": proxies.TCP_RULES,
    "option": proxies.OPTIONS,
    "timeout": proxies.TIMEOUTS,
}
READ_ELSEWHERE = frozenset({"userlist", "cache", "http-errors", "crt-store", "ssl-f-use"})


def fact_of(section: str, words: tuple[str, ...]) -> Fact | None:
    """What is known of the keyword of a line in a section of this kind; None for one that nobody knows."""
    words = words[1:] if words[0] in ("no", "default") and len(words) > 1 else words
    if section == "global":
        return _global_fact(words)
    if section in process.SECTIONS:
        kind, why = process.SECTIONS[section]
        return Fact(words[0], kind, why)
    if section in READ_ELSEWHERE:
        return Fact(words[0], Kind.TRAFFIC)
    return _proxy_fact(words)


def _global_fact(words: tuple[str, ...]) -> Fact | None:
    fact = process.GLOBAL.get(" ".join(words[:2])) or process.GLOBAL.get(words[0])
    for family, (kind, why) in process.FAMILIES.items():
        if fact is None and words[0].startswith(family):
            return Fact(words[0], kind, why)
    return fact


def _proxy_fact(words: tuple[str, ...]) -> Fact | None:
    table = RULES.get(words[0])
    if table is not None and len(words) > 1:
        return _rule_fact(table, words)
    return proxies.PROXY_WORDS.get(" ".join(words[:2])) or proxies.PROXY_WORDS.get(words[0])


def _rule_fact(table: Mapping[str, Fact], words: tuple[str, ...]) -> Fact | None:
    """The second word; tcp-request has its phase between the two, and calls have arguments in brackets."""
    at = 2 if words[1] in ("connection", "session", "content") and len(words) > 2 else 1
    action = words[at].partition("(")[0]
    if action.startswith("lua."):
        action = "lua"
    return table.get(action)


TEMPLATE = "A template fills this in; import the file that comes of it, as HAProxy does not start with this one."
_TEMPLATE = re.compile(r"\{\{|\{%|\{[A-Za-z_]+\}|%\(|<%|<[A-Za-z_-]+>|@[A-Za-z_]+@|\[\.\.\.\]")


def answers_challenges(words: tuple[str, ...]) -> bool:
    """Whether a line has the script answer that proves hostnames to a certificate authority (`lua.acme-http01`)."""
    return words[1:2] == ("use-service",) and words[2:3] != () and words[2].lower().startswith("lua.acme")


def close(configuration: Configuration, ledger: Ledger) -> None:
    """A verdict for every line that no reader took, by what its keyword is."""
    kinds = {line.number: section for section in configuration.sections for line in (section.header, *section.lines)}
    for line in configuration.unquoted:
        _say_quote(ledger, kinds.get(line.number), line)
    for line in ledger.open_lines():
        section = kinds.get(line.number)
        if section is None:
            ledger.impossible(line, "This line stands before any section, so HAProxy does not start with it.")
        elif section.header is line:
            _close_header(ledger, section)
        else:
            _close_line(ledger, section, line)


def _say_quote(ledger: Ledger, section: Section | None, line: Line) -> None:
    """A quote that does not end: what a line of traffic says then, nobody knows; others are no concern of nodes."""
    fact = fact_of(section.kind, line.words) if section else None
    if fact is not None and fact.kind in (Kind.NODE, Kind.OURS):
        ledger.differs(line, f"A quote does not end on this line, so HAProxy since 1.6 does not start. {fact.why}")
    else:
        ledger.impossible(line, "A quote does not end on this line; close it.")


def _close_header(ledger: Ledger, section: Section) -> None:
    if section.kind in process.SECTIONS:
        kind, why = process.SECTIONS[section.kind]
        ledger.note(section.header, _VERDICTS[kind], why)
    elif section.kind in ("global", "ssl-f-use", "stats-file"):
        ledger.note(section.header, Verdict.NODE_SETTING, process.MACHINE)
    elif section.kind == "defaults":
        ledger.mapped(section.header)
    else:
        ledger.note(section.header, Verdict.DEAD, f"Nothing that is imported uses this {section.kind}.")


_VERDICTS = {
    Kind.NODE: Verdict.NODE_SETTING,
    Kind.OURS: Verdict.NODE_SETTING,
    Kind.NEVER: Verdict.NOT_POSSIBLE,
    Kind.TRAFFIC: Verdict.NOT_POSSIBLE,
}


def _close_line(ledger: Ledger, section: Section, line: Line) -> None:
    fact = fact_of(section.kind, line.words)
    elsewhere = fact_of("global", line.words) if fact is None and section.kind in PROXIES else None
    if elsewhere is not None and elsewhere.kind in (Kind.NODE, Kind.OURS):
        ledger.note(
            line, Verdict.NODE_SETTING, f"HAProxy takes it in global alone, and does not start. {elsewhere.why}"
        )
    elif fact is None and _TEMPLATE.match(line.text.strip()):
        ledger.impossible(line, TEMPLATE)
    elif fact is None:
        ledger.impossible(line, f"HAProxy 1.4 to 3.2 have no {_named(line)} in {section.kind}{_nearest(line)}.")
    elif line.keyword in ("no", "default") and fact.kind is Kind.TRAFFIC:
        ledger.mapped(line)
    elif fact.kind is Kind.TRAFFIC and _is_unused(ledger, section):
        ledger.note(line, Verdict.DEAD, "Nothing of this section is imported.")
    else:
        calls = any(word.startswith("lua.") for word in line.words)
        known = fact.why or proxies.WHY_NOT.get("lua" if calls else fact.keyword)
        why = known or f"Spillway has no {fact.keyword} that says this."
        ledger.note(line, _VERDICTS[fact.kind], why)


def _is_unused(ledger: Ledger, section: Section) -> bool:
    """Whether nothing uses the section; a proxy that nobody can connect to is said to differ, and makes nothing."""
    dead = ledger.verdict_of(section.header) is Verdict.DEAD
    return dead or (section.kind in PROXIES and not ledger.is_part(section.header))


def _named(line: Line) -> str:
    return " ".join(line.words[:2]) if line.keyword in RULES else line.keyword


def _nearest(line: Line) -> str:
    known = [*proxies.PROXY_WORDS, *process.GLOBAL]
    near = difflib.get_close_matches(line.keyword, known, 1)
    return f"; did you mean {near[0]}?" if near and near[0] != line.keyword else ""
