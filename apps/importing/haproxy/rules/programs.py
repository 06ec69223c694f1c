"""The rules of a frontend or backend as a program, in HAProxy's order; and what became of each of their lines.

Connections first (`tcp-request`), then `block` and `http-request` with the `req…` words, `redirect`, and at last
`use_backend`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from apps.compiler.matching import patterns
from apps.importing.context import say_unknown
from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.criteria.networks import Networks, asks_networks_alone
from apps.importing.haproxy.rules.answers import by_answer, read_old, read_response
from apps.importing.haproxy.rules.choosing import Choices
from apps.importing.haproxy.rules.limits import BANNED, COUNTERS
from apps.importing.haproxy.rules.mapped import by_map
from apps.importing.haproxy.rules.moved import Moved
from apps.importing.haproxy.rules.old_words import KEYWORDS, header_of, host_asked, read_old_request
from apps.importing.haproxy.rules.requests import Read, has_own_text, names_client, read_request, told
from apps.importing.haproxy.rules.soft import OWN_TEXT, Soft
from apps.importing.haproxy.rules.variables import filled
from apps.importing.haproxy.text.keywords import answers_challenges, fact_of
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.text.tables.classes import Kind
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.certainty import asks, differing, refusing, source_and_rest, surely
from apps.importing.logic.decisions import Effect, Program, Rule, change
from apps.importing.logic.formulas import Formula, all_of, negated
from apps.importing.logic.paths import REST
from apps.importing.verdicts import Line, Verdict

NEVER = "HAProxy no longer has the request when it answers, so this never holds; it keeps what it needs by set-var."
CLOSED = "Nodes cannot ask this, so whoever had to show it is refused; protect the place in a policy, or open it."
CHALLENGES = (
    "Nodes answer the challenges (HTTP-01) of certificates that Spillway orders; another client gets what rules say."
)
OTHER_TYPES = "A route has headers of its own for one list of media types, and a line above has another one."


@dataclass(slots=True)
class Reader:
    """Reads one proxy."""

    context: Context
    section: Section
    conditions: Conditions
    soft: Soft
    moved: Moved
    rules: list[Rule] = field(default_factory=list)
    answers: list[Rule] = field(default_factory=list)
    _pattern: Formula = True

    def program(self) -> Program:
        """All rules of the proxy."""
        access = self._connections()
        for line in self.section.each("block"):
            self._old(line)
        for line in self.section.all_lines():
            if line.keyword == "http-request" and len(line.words) > 1:
                self._request(line)
            elif line.keyword in KEYWORDS - {"block"}:
                self._old(line)
        self._identified()
        self._client()
        for line in self.section.each("redirect"):
            words, formula = self.conditions.of(line.words[1:])
            self._redirect(line, formula, words, phase=1)
        if self.section.kind != "backend":
            Choices(self.context, self.conditions, self.section, moved=self.moved).add(self.rules)
        self._responses()
        return Program(tuple(self.rules), tuple(self.answers), access)

    def _identified(self) -> None:
        """`unique-id-header`: servers get an ID of the request under this name as well."""
        line = self.section.last("unique-id-header")
        if line is None or len(line.words) < 2:
            return
        if self.section.last("unique-id-format") is None:
            self.context.ledger.note(line, Verdict.DEAD, "No unique-id-format says what the ID is.")
            return
        self._admit(line, True, read_request("set-header", (line.words[1], "%[unique-id]")))
        self.context.ledger.differs(line, "The ID is made by the node, in a form of its own.")

    def _client(self) -> None:
        """`option forwardfor header`: servers get the address of the client under this name as well."""
        line = self.section.last("option", "forwardfor")
        if line is not None and (read := names_client(line.words))[0]:
            self._admit(line, True, read)

    def _connections(self) -> dict[str, list[str]]:
        """`tcp-request` rules of an http proxy; `accept` ends them alone. What networks decide is the listener's."""
        passed: list[Formula] = []
        networks = Networks(self.context, self.conditions, self.section.name)
        for line in self.section.each("tcp-request"):
            action, words = action_of(line)
            words, formula = self.conditions.of(words)
            if action in ("inspect-delay", "expect-proxy") or action.startswith("set-var"):
                self.context.ledger.mapped(line)
            elif action == "accept":
                self.context.ledger.mapped(line)
                if asks_networks_alone(formula):
                    networks.accept(line.words[1], formula)
                if formula is not True:
                    passed.append(negated(self._passing(line, formula)))
            elif action in ("reject", "silent-drop") and self._is_of_networks(formula, passed):
                networks.refuse(line, line.words[1], formula)
            elif action in ("reject", "silent-drop"):
                self._admit(line, all_of([*passed, formula]), read_request("silent-drop", words))
            elif action.startswith("track-sc"):
                self.soft.track(line, action, words, formula)
            elif action.startswith(COUNTERS):
                self.context.ledger.differs(line, BANNED)
        return networks.access()

    def _passing(self, line: Line, formula: Formula) -> Formula:
        """Who surely passes; what cannot be asked is said where others are refused."""
        sure, unknown = surely(formula)
        if any(action_of(each)[0] in ("reject", "silent-drop") for each in self.section.each("tcp-request")):
            for why in unknown:
                say_unknown(self.context, line, why, gone=False)
        return sure

    def _is_of_networks(self, formula: Formula, passed: list[Formula]) -> bool:
        """Whether a listener can keep out whom the rule keeps out: a backend has none of its own."""
        return self.section.kind != "backend" and all(map(asks_networks_alone, (formula, *passed)))

    def _request(self, line: Line) -> None:
        action, words = line.words[1], line.words[2:]
        fact = fact_of("frontend", line.words)
        if self._serves(line) or (fact is not None and fact.kind is not Kind.TRAFFIC):
            return
        words, formula = self.conditions.of(words)
        words = filled(self.context, words, formula)
        if action.startswith("track-sc"):
            self.soft.track(line, action, words, formula)
        elif action.startswith(("set-var", "unset-var")):
            self.context.ledger.mapped(line)
        elif action.startswith(COUNTERS):
            self.context.ledger.differs(line, BANNED)
        elif action == "auth":
            self._rule(line, self.soft.authentication(line, words, formula))
        elif action == "redirect":
            self._redirect(line, formula, words)
        elif action == "cache-use":
            self._cache(line, words, formula)
        elif (effect := told(action, words, formula)) is not None:
            self._admit(line, formula, ([effect], ""))
        else:
            self._admit(line, formula, read_request(action, words))

    def _serves(self, line: Line) -> bool:
        """Whether it is an answer of HAProxy's own that nodes give as well."""
        if line.words[1:3] == ("use-service", "prometheus-exporter"):
            self.context.ledger.note(line, Verdict.NODE_SETTING, "Metrics of nodes are read from Spillway.")
            return True
        if answers_challenges(line.words):
            self.conditions.of(line.words[2:])
            self.context.ledger.differs(line, CHALLENGES)
            return True
        return False

    def _redirect(self, line: Line, formula: Formula, words: tuple[str, ...], *, phase: int = 0) -> None:
        entries = by_map(self.context, line, words)
        if entries is None:
            self._admit(line, formula, read_request("redirect", words), phase=phase)
        for each, key in entries or ():
            self._admit(line, all_of([formula, key]), read_request("redirect", each), phase=phase)

    def _cache(self, line: Line, words: tuple[str, ...], formula: Formula) -> None:
        """A cache for all requests is one of the listener (listening.py)."""
        if formula is not True or not words or self.section.kind == "backend":
            self.context.ledger.differs(line, "Nothing is cached: the cache of a listener is for all of its paths.")
        for each in self.section.each("http-response", "cache-store") if self.section.kind == "backend" else ():
            self.context.ledger.differs(each, "Nothing is cached: the cache of a listener is for all of its paths.")

    def _old(self, line: Line) -> None:
        words, formula = self.conditions.of(line.words[1:])
        header = header_of(words) if line.keyword == "reqadd" else ()
        if hosts := host_asked(line.keyword, words):
            formula = all_of([formula, self.context.questions.read(hosts)])
        effect = told("add-header", header, formula)
        self._admit(line, formula, ([effect], "") if effect else read_old_request(line.keyword, words))

    def _admit(self, line: Line, formula: Formula, read: Read | None, *, phase: int = 0) -> None:
        """Rules of the effects, as far as their condition can be asked."""
        ledger = self.context.ledger
        if read is None:
            return
        effects, said = read
        if not effects:
            if said.startswith("different:"):
                ledger.differs(line, said.removeprefix("different:"))
            elif said.startswith("dead:"):
                ledger.note(line, Verdict.DEAD, said.removeprefix("dead:"))
            elif said:
                ledger.impossible(line, said)
            else:
                ledger.mapped(line)
            return
        if said:
            ledger.differs(line, said.removeprefix("different:"))
        before = len(self.rules)
        for rule in self.soft.rules(line, formula, effects, phase):
            self._rule(line, rule)
        self.moved.add(self.rules[before:])

    def _rule(self, line: Line, rule: Rule | None) -> None:
        """Add a rule whose condition is certain; lists of networks become policies of their own."""
        ledger = self.context.ledger
        if rule is None:
            return
        rule = replace(rule, condition=self.moved.before(all_of([rule.condition, self._path_of(rule.effect)])))
        condition, unknown = surely(rule.condition)
        closed, _ = surely(refusing(rule.condition)) if _refuses(rule.effect) else (condition, [])
        for why in unknown:
            say_unknown(self.context, line, why, gone=condition is False)
        if closed != condition:
            ledger.impossible(line, CLOSED)
            condition = closed
        for why in differing(condition):
            ledger.differs(line, why)
        if condition is False:
            if not unknown:
                ledger.mapped(line)
            return
        ledger.mapped(line)
        access = self._access(rule.effect, condition)
        if access is None:
            self.rules.append(Rule(line, condition, rule.effect, rule.phase))
        elif has_own_text(rule.effect):
            ledger.differs(line, OWN_TEXT)
        for effect, rest in access or ():
            self.rules.append(Rule(line, rest, effect, rule.phase))

    def _path_of(self, effect: Effect) -> Formula:
        """What a path must be like to be rewritten."""
        block, name, value = effect.data if effect.kind == "change" else ("", "", "")
        if block == "path" and name != "/":
            match, text = ("beg", str(name)) if str(name).endswith("/") else ("segment", str(name).strip("/"))
            return self.context.questions.atoms.get("path", match, (text,))
        if (block, name) == ("rewrite", "path_regex"):
            takes_all = all(patterns.matches(str(value), path) for path in ("/", REST))
            self._pattern = takes_all or self.context.questions.atoms.get("path", "reg", (f"^{value}$",))
        return self._pattern if block == "rewrite" and str(name).startswith("path_re") else True

    def _access(self, effect: Effect, condition: Formula) -> list[tuple[Effect, Formula]] | None:
        """A refusal that asks for networks, as lists of networks."""
        if effect.kind != "fixed" or not asks(condition, "source"):
            return None
        found = source_and_rest(condition)
        status = effect.data[0]
        if found is None or not isinstance(status, int) or status < 400:
            return None
        effects = []
        for atom, themselves, rest in found:
            name = self.context.network_list(atom.values, self.conditions.label_of(atom))
            effects.append((change("access", "deny" if themselves else "allow", name), rest))
            if status != 403:
                effects.append((change("access", "status", status), rest))
        return effects

    def _responses(self) -> None:
        for line in self.section.each("tcp-response"):
            if action_of(line)[0] in PASSING:
                self.context.ledger.mapped(line)
        answering = Conditions(self.section, self.context.questions, self.context.ledger, of_responses=True)
        for keyword, phase in (("http-response", 0), ("http-after-response", 1)):
            for line in self.section.each(keyword):
                if len(line.words) > 1:
                    words, formula = answering.of(line.words[2:])
                    words = filled(self.context, words, formula)
                    self._answer(line, formula, read_response(line.words[1], words), phase)
        for line in self.section.all_lines():
            if line.keyword in ("rspadd", "rspdel", "rspidel", "rsprep", "rspirep"):
                words, formula = answering.of(line.words[1:])
                self._answer(line, formula, read_old(line.keyword, words), 0)
            elif line.keyword == "http-response" and line.words[1:2] and line.words[1].startswith(("set-var", "track")):
                self.context.ledger.mapped(line)
            elif line.keyword == "http-response" and line.words[1:2] and line.words[1].startswith(COUNTERS):
                self.context.ledger.differs(line, BANNED)
        self.conditions.used |= answering.used

    def _answer(self, line: Line, formula: Formula, read: Read | None, phase: int) -> None:
        if formula is False:
            self.context.ledger.note(line, Verdict.DEAD, NEVER)
            return
        if read is None:
            return
        read, formula = by_answer(read, formula)
        types = next((each.data[2] for each in read[0] if each.data[:2] == ("typed_headers", "types")), None)
        if types is not None and self.context.types not in ((), types):
            self.context.ledger.impossible(line, OTHER_TYPES)
            return
        if isinstance(types, tuple):
            self.context.types = types
        before = len(self.rules)
        self._admit(line, formula, read, phase=phase)
        self.answers += self.rules[before:]
        del self.rules[before:]


def _refuses(effect: Effect) -> bool:
    status = effect.data[0] if effect.kind == "fixed" else 0
    return isinstance(status, int) and status >= 400


# What of tcp-response closes no connection.
PASSING = ("inspect-delay", "accept", "set-var")


def action_of(line: Line) -> tuple[str, tuple[str, ...]]:
    """Action and words behind it, without the phase."""
    words = line.words[1:]
    words = words[1:] if words[:1] and words[0] in ("connection", "session", "content") else words
    return (words[0], words[1:]) if words else ("", ())
