"""ingress-nginx: snippets that only set headers; any other one is not read."""

from __future__ import annotations

from apps.compiler import header_text
from apps.compiler.grammar import GrammarError
from apps.importing.kubernetes.ingress.settings import Annotations, Settings
from apps.importing.nginx.rules.headers import CONNECTION, USUAL, WITH_ERRORS, header_value
from apps.importing.nginx.text.directives import Directive
from apps.importing.nginx.text.tree import Tree
from apps.importing.verdicts import Ledger, Verdict

NAMES = ("configuration-snippet", "server-snippet")
# What a ledger says of a line before anybody read it.
NOT_READ = ("This line was not read.",)
BLOCKS = {
    "more_set_headers": ("response_headers", "set"), "more_clear_headers": ("response_headers", "remove"),
    "add_header": ("response_headers", "add"), "proxy_set_header": ("request_headers", "set"),
    "more_set_input_headers": ("request_headers", "set"), "more_clear_input_headers": ("request_headers", "remove"),
}  # fmt: skip
USUAL_HOSTS = ("$host", "$http_host", "$best_http_host")
READ = {"response_headers": header_text.response_header, "request_headers": header_text.request_header}


def headers(settings: Settings, said: Annotations) -> None:
    """Headers as rules, of each snippet that has nothing else."""
    for name in NAMES:
        if (text := said.text(name)) is not None:
            _read(settings, said, name, text)


def _read(settings: Settings, said: Annotations, annotation: str, text: str) -> None:
    ledger = Ledger()
    tree = Tree(text, {}, ledger)
    if any(line.verdict is Verdict.NOT_POSSIBLE and line.reasons != NOT_READ for line in ledger.report()):
        return
    try:
        found = [each for directive in tree.root.block or () for each in _headers_of(directive)]
    except GrammarError:
        return
    for block, field, name, value in found:
        before = settings.rules.get(block, {}).get(field, [] if field == "remove" else {})
        settings.rule(block, **{field: [*before, name] if field == "remove" else {**before, name: value}})
    said.mapped(annotation)
    if any(each.name == "add_header" and each.args[-1] != "always" for each in tree.root.block or ()):
        said.differs(annotation, WITH_ERRORS)


def _headers_of(directive: Directive) -> list[tuple[str, str, str, str]]:
    """Block, field, name and value of each header. Raises GrammarError for what is not read."""
    if directive.name not in BLOCKS or directive.block is not None or not directive.args:
        raise GrammarError("snippet", "Only headers are read.")
    block, field = BLOCKS[directive.name]
    if not directive.name.startswith("more_"):
        pairs = [directive.args[:2]] if len(directive.args) > 1 else []
    elif field == "remove":
        pairs = [(name, "") for name in directive.args]
    else:
        pairs = [tuple(part.strip() for part in arg.partition(":")[::2]) for arg in directive.args]
    found = []
    for name, text in pairs:
        if directive.name == "proxy_set_header" and _is_usual(name.lower(), text):
            continue
        value = header_value(text) if text else ""
        if value is None:
            raise GrammarError("variable", "It is made of what header texts have no variable for.")
        found.append((block, field if text else "remove", READ[block](name), value))
    return found


def _is_usual(header: str, text: str) -> bool:
    """Whether nodes tell servers so anyhow, or it is a matter of the connection alone."""
    return header in CONNECTION or text in USUAL.get(header, ()) or (header == "host" and text in USUAL_HOSTS)
