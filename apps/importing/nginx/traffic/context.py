"""What every reader of one nginx.conf shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apps.importing.context import Context
from apps.importing.files import Files
from apps.importing.logic.questions import Questions
from apps.importing.naming import Names
from apps.importing.nginx.rules.variables import Variables
from apps.importing.nginx.text.directives import Directive
from apps.importing.nginx.text.environment import say_unset, with_environment
from apps.importing.nginx.text.tree import Tree
from apps.importing.options import ImportOptions
from apps.importing.results.made import Made
from apps.importing.verdicts import Ledger


@dataclass(slots=True)
class Nginx:
    """The tree, the verdicts, names and files; upstreams and zones by name; what maps give variables."""

    tree: Tree
    context: Context
    made: Made
    upstreams: dict[str, Directive]
    zones: dict[str, Directive]
    variables: Variables

    @property
    def ledger(self) -> Ledger:
        """The verdicts."""
        return self.context.ledger


def read_context(text: str, files: Mapping[str, str], options: ImportOptions) -> Nginx:
    """The context of one configuration, with its upstreams, zones and maps."""
    ledger = Ledger()
    given = {path: with_environment(each, options.environment) for path, each in files.items()}
    tree = Tree(with_environment(text, options.environment), given, ledger)
    context = Context(ledger, Files(files), options, Questions(), Names(options.prefix))
    context.needs |= tree.needs
    variables = Variables(context.questions)
    everything = list(tree.root.everything())
    say_unset(ledger, everything)
    for each in everything:
        read = {"map": variables.read_map, "geo": variables.read_geo}.get(each.name)
        if read is not None and each.block is not None and (why := read(each)):
            ledger.impossible(each.line, why)
    zones = {
        arg.removeprefix("zone=").partition(":")[0]: each
        for each in everything if each.name in ("limit_req_zone", "limit_conn_zone")
        for arg in each.args if arg.startswith("zone=")
    }  # fmt: skip
    upstreams = {each.args[0]: each for each in everything if each.name == "upstream" and each.args}
    return Nginx(tree, context, Made(), upstreams, zones, variables)
