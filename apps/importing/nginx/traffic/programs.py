"""One server of nginx.conf as a list of rules: what it does with every request, then what its locations do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from apps.importing.context import say_unknown
from apps.importing.logic.answers import about_path
from apps.importing.logic.certainty import differing, surely
from apps.importing.logic.decisions import NOWHERE, Effect, Rule
from apps.importing.logic.formulas import Atom, Formula, all_of, atoms_of, negated, simplified
from apps.importing.logic.paths import paths_of
from apps.importing.logic.questions import sayable
from apps.importing.nginx.rules.access import AS_WRITTEN
from apps.importing.nginx.rules.conditions import asks_for_files, condition_of
from apps.importing.nginx.rules.headers import response_headers
from apps.importing.nginx.rules.returning import Answered, answer_of, redirected
from apps.importing.nginx.rules.rewriting import NOT_SAID, Moved, begun, moved, redirect_of
from apps.importing.nginx.rules.targets import Captured, beginning_of, host_beginning_of
from apps.importing.nginx.rules.variables import OTHER_MATCH, Variables, asks_parts_of_hosts
from apps.importing.nginx.text.directives import Directive
from apps.importing.nginx.traffic.contents import Contents
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.nginx.traffic.locations import Choice, choices_of, modifier_of
from apps.importing.verdicts import Line, Verdict

NO_FILES = "Nodes have no files, so this is decided as if no file were there; put a server behind that has them."
REFUSES = (("401",), ("403",), ("404",), ("444",))
HEADERS = ("add_header", "expires")
IN_ORDER = ("set", "if", "return", "rewrite", "break")


@dataclass(slots=True)
class Left:
    """When directives that follow are still read, and when the request is still to be answered (`goes_on`).

    `others` are blocks of `if` that answer in the place of the location: the last one whose condition holds.
    """

    reads: Formula = True
    goes_on: Formula = True
    others: list[tuple[Formula, Directive]] = field(default_factory=list)

    def without(self, condition: Formula, *, answered: bool) -> None:
        """Where the condition holds nothing more is read; and what was still read there may be answered as well."""
        read = all_of([self.reads, condition])
        self.reads = simplified(all_of([self.reads, negated(condition)]), lambda _: None)
        if answered:
            self.goes_on = simplified(all_of([self.goes_on, negated(read)]), lambda _: None)


@dataclass(slots=True)
class Programs:
    """Reads the servers of one file into rules; each rule asks for the host of its server."""

    nginx: Nginx
    contents: Contents
    rules: list[Rule] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    host: Formula = True

    def read(self, server: Directive, host: Formula, name: str) -> tuple[Rule, ...]:
        """The rules of a server for requests of these hosts; the last one holds always."""
        self.rules, self.host = [], host
        variables = self.nginx.variables.copy()
        self.contents.variables, self.contents.server_name = variables, name
        self.choices = list(choices_of(server, self.nginx.context.questions))
        self._mark(server)
        left = self._in_order(server, True, variables, Captured(), inside=None)
        for choice in self.choices:
            self._location(choice, left.goes_on, variables)
        self._content(server, left.goes_on, variables)
        return tuple(self.rules)

    def _mark(self, server: Directive) -> None:
        """Locations are part of routes; one that no pattern of ours says is not."""
        self.nginx.ledger.mapped(server.line)
        said = {id(choice.scope): choice.condition for choice in self.choices if not choice.slash}
        for each in server.everything():
            if each.name != "location":
                continue
            self.nginx.ledger.mapped(each.line)
            condition = said.get(id(each), True)
            for why in surely(condition)[1] if id(each) in said else ():
                self.nginx.ledger.impossible(each.line, f"This location takes nothing: {why}.")
            if modifier_of(each)[0] == "@":
                self.nginx.ledger.note(each.line, Verdict.MAPPED)

    def _location(self, choice: Choice, around: Formula, variables: Variables) -> None:
        guard = all_of([around, choice.condition])
        sure, unknown = surely(guard)
        if sure is False and unknown:
            return
        if choice.slash and choice.scope.last("internal") is None:
            slash = answer_of(("301", choice.slash + "$is_args$args"), Captured(), "", "")
            self._final(choice.scope.line, guard, slash)
            return
        own = variables.copy()
        left = self._in_order(choice.scope, guard, own, choice.captured, inside=choice.scope)
        for condition, other in reversed(left.others):
            self._content(other, all_of([guard, left.goes_on, condition]), own, choice.captured)
        self._content(choice.scope, all_of([guard, left.goes_on]), own, choice.captured)

    def _in_order(
        self, block: Directive, guard: Formula, variables: Variables, captured: Captured, *, inside: Directive | None
    ) -> Left:
        """`set`, `if`, `return` and `rewrite`, one after the other; `inside` is the location around them."""
        left = Left()
        self.contents.variables = variables
        for each in block.each(*IN_ORDER):
            now = all_of([guard, left.reads])
            if left.reads is False:
                self._below(each)
            elif each.name == "set" and len(each.args) == 2:
                variables.set(each.args[0].removeprefix("$"), each.args[1], left.reads)
                self.nginx.ledger.mapped(each.line)
            elif each.name == "break":
                self.nginx.ledger.mapped(each.line)
                left.reads = False
            elif each.name == "return":
                self._return(block, each, now, variables, captured)
                left.without(True, answered=True)
            elif each.name == "rewrite" and len(each.args) > 1:
                self._rewrite(block, each, now, left, variables, inside)
            elif each.name == "if":
                self._if(each, now, left, variables, captured, inside)
        return left

    def _below(self, directive: Directive) -> None:
        for each in (directive, *directive.everything()):
            self.nginx.ledger.note(each.line, Verdict.DEAD, "A directive above answers every request before this one.")

    def _if(
        self, each: Directive, guard: Formula, left: Left, variables: Variables, captured: Captured,
        inside: Directive | None,
    ) -> None:  # fmt: skip
        condition = condition_of(each, variables)
        sure, unknown = surely(condition)
        self.nginx.ledger.mapped(each.line)
        self._say(each, sure, unknown)
        if sure is False and unknown:
            for one in each.everything():
                self.nginx.ledger.impossible(one.line, "Its condition cannot be asked, so this never holds.")
            return
        own, now, asked = _captured_by(each, captured), all_of([guard, sure]), all_of([left.reads, sure])
        for one in (one for one in each.each("set") if len(one.args) == 2):
            variables.set(one.args[0].removeprefix("$"), one.args[1], all_of([left.reads, sure]))
            self.nginx.ledger.mapped(one.line)
        inner = self._in_order(_without_set(each), now, variables, own, inside=inside)
        if inner.reads is not True:
            left.without(all_of([sure, negated(inner.reads)]), answered=False)
        if inner.goes_on is not True:
            left.without(all_of([sure, negated(inner.goes_on)]), answered=True)
        if inside is not None and any(each.each("proxy_pass", "grpc_pass")):
            self._content(each, all_of([now, inner.goes_on]), variables, own)
            left.without(sure, answered=True)
        elif inside is not None and (left.others or any(each.each(*HEADERS))):
            left.others.append((asked, _with_headers(inside, each)))

    def _say(self, each: Directive, sure: Formula, unknown: list[str]) -> None:
        """What of a condition is asked in another way, or not at all."""
        if asks_for_files(each):
            self.nginx.ledger.impossible(each.line, NO_FILES)
        for why in unknown:
            say_unknown(self.nginx.context, each.line, why, gone=sure is False)
        for why in differing(sure):
            self.nginx.ledger.differs(each.line, why)
        if asks_parts_of_hosts(sure):
            self.nginx.ledger.differs(each.line, OTHER_MATCH)

    def _return(
        self, block: Directive, each: Directive, guard: Formula, variables: Variables, captured: Captured
    ) -> None:
        self.nginx.ledger.mapped(each.line)
        if each.args[:1] in REFUSES and of_some_paths(block):
            self.nginx.ledger.differs(each.line, AS_WRITTEN)
        text = " ".join(each.args)
        choices = variables.choices(text) if len(each.args) < 3 else [(True, text)]
        for condition, one in choices:
            if len(choices) > 1 and one.rstrip() == each.args[0]:
                continue  # a map without an entry, which leads nowhere
            args = each.args if one == text else tuple(one.split(" ", 1)) if len(each.args) == 2 else (one,)
            kind = block.inherited("default_type")
            answered = answer_of(args, captured, self.contents.server_name, kind.args[0] if kind else "text/plain")
            self._final(each.line, all_of([guard, condition]), answered, block)

    def _final(self, line: Line, guard: Formula, answered: Answered, block: Directive | None = None) -> None:
        if answered.why:
            (self.nginx.ledger.differs if answered.effect else self.nginx.ledger.impossible)(line, answered.why)
        if answered.effect is None:
            self.emit(line, guard, [NOWHERE])
            return
        headers = response_headers(block, self.contents.variables, self.nginx.ledger) if block is not None else ()
        self.emit(line, guard, [*headers, answered.effect])

    def _rewrite(
        self, block: Directive, each: Directive, guard: Formula, left: Left, variables: Variables,
        inside: Directive | None,
    ) -> None:  # fmt: skip
        expression, text = each.args[0], each.args[1]
        flag = each.args[2] if len(each.args) > 2 else ""
        questions = self.nginx.context.questions
        plain, why = begun(expression.removeprefix("(?i)"), _prefix_of(inside))
        ignore_case = expression.startswith("(?i)")
        matches = (
            True
            if plain in ("^", "^(.*)$", "^/(.*)$", "^.*$", ".*", "^/", "^(.*)")
            else sayable(questions, questions.of_regex(plain, "path", "", ignore_case=ignore_case))
        )
        sure, unknown = surely(matches)
        if unknown:
            self.nginx.ledger.impossible(each.line, NOT_SAID)
            return
        self.nginx.ledger.mapped(each.line)
        if why:
            self.nginx.ledger.differs(each.line, why)
        now = all_of([guard, sure])
        if flag in ("redirect", "permanent") or re.match(r"https?://|\$scheme", text):
            target = redirect_of(plain, text, self.contents.server_name)
            self._final(each.line, now, redirected(301 if flag == "permanent" else 302, target), block)
            left.without(sure, answered=True)
            return
        change = moved(plain, text)
        if change is None:
            self.nginx.ledger.impossible(each.line, NOT_SAID)
        elif flag == "break" and inside is not None:
            self.emit(each.line, now, change.effects)
            left.without(sure, answered=False)
        elif self._search_again(block, each, now, change, flag, variables):
            left.without(sure, answered=True)

    def _search_again(
        self, block: Directive, each: Directive, guard: Formula, change: Moved, flag: str, variables: Variables
    ) -> bool:
        """`last`: the location of the new path answers, where all that the new path may be are of one location."""
        behind = (block.block or [])[(block.block or []).index(each) + 1 :] if each in (block.block or []) else []
        if flag == "" and any(one.name in ("rewrite", "return", "if") for one in behind):
            self.nginx.ledger.impossible(each.line, "It is rewritten again below; say it in one step.")
            return False
        scope = self._scope_of(change)
        if scope is None:
            self.nginx.ledger.impossible(each.line, "The new path may belong to several locations.")
            return False
        if any(scope.each(*IN_ORDER, "internal")) or self.contents.replaces_path(scope):
            self.nginx.ledger.impossible(each.line, "Its location changes the path once more.")
            return False
        self.emit(each.line, guard, change.effects)
        self._content(scope, guard, variables)
        return True

    def _scope_of(self, change: Moved) -> Directive | None:
        """The only location of all paths that it may lead to."""
        atoms = [atom for choice in self.choices for atom in atoms_of(choice.condition)]
        if any(atom.subject != "path" for atom in atoms):
            return None
        paths = [change.beginning]
        if not change.is_fixed:
            near = [path for path in paths_of(dict.fromkeys(atoms)).examples if path.startswith(change.beginning)]
            paths = [change.beginning + "zz", *near]
        found = {id(choice): choice for path in paths if (choice := self._choice_of(path)) is not None}
        scopes = {id(choice.scope): choice for choice in found.values()}
        only = next(iter(scopes.values()), None)
        return only.scope if len(scopes) == 1 and only is not None and not only.slash else None

    def _choice_of(self, path: str) -> Choice | None:
        def known(atom: Atom) -> bool:
            return about_path(atom, path)

        return next((each for each in self.choices if simplified(each.condition, known) is True), None)

    def _content(
        self, scope: Directive, guard: Formula, variables: Variables, captured: Captured | None = None
    ) -> None:
        """What answers in a location once nothing of the above did."""
        if guard is False:
            return
        self.contents.variables = variables
        for condition, line, effects in self.contents.of(scope, captured or Captured()):
            self.emit(line, all_of([guard, condition]), effects)

    def emit(self, line: Line, condition: Formula, effects: Iterable[Effect]) -> None:
        """Rules of the effects, as far as their condition is certain."""
        sure, _ = surely(all_of([self.host, condition]))
        if sure is not False:
            self.rules += [Rule(line, sure, effect) for effect in effects]


def _captured_by(directive: Directive, before: Captured) -> Captured:
    """What groups hold behind `if ($host ~ …)`."""
    words = [word.strip("()") if at in (0, len(directive.args) - 1) and len(word) > 1 else word
             for at, word in enumerate(directive.args)]  # fmt: skip
    if len(directive.args) < 3 or directive.args[-2] not in ("~", "~*"):
        return before
    expression = directive.args[-1].removesuffix(")")
    if expression.count("(") > expression.count(")"):
        expression += ")"
    variable = words[0].lstrip("(")
    if variable in ("$host", "$http_host"):
        return replace(before, host=host_beginning_of(expression))
    return Captured(beginning_of(expression)) if variable in ("$uri", "$request_uri", "$document_uri") else before


def _prefix_of(location: Directive | None) -> str:
    """What all paths of a location begin with; empty where nothing says it."""
    sign, text = modifier_of(location) if location is not None else ("@", "")
    return text if sign in ("", "^~", "=") else ""


def of_some_paths(block: Directive) -> bool:
    """Whether a location of some paths is around."""
    around: Directive | None = block
    while around is not None and around.name != "location":
        around = around.parent
    return around is not None and modifier_of(around)[1] != "/"


def _with_headers(location: Directive, block: Directive) -> Directive:
    """The location with the headers of a block of `if`: those that it says take the place of the location's."""
    said = [each for each in block.block or () if each.name in HEADERS]
    names = {each.name for each in said}
    kept = [each for each in location.block or () if each.name not in names]
    return replace(location, block=[*kept, *said])


def _without_set(block: Directive) -> Directive:
    """The block for what is answered in it; its variables are set already."""
    kept = [each for each in block.block or () if each.name != "set"]
    return replace(block, block=kept)
