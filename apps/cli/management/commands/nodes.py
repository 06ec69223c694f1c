"""The way in for nodes by hand: a token for a machine, revocation, the authorities."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.actors import platform_actor
from apps.core.errors import SpillwayError
from apps.enrolment import revoking, rotating, selectors, tokens


class Command(BaseCommand):
    """`nodes enrol us-1 --fleet eu`, `nodes revoke us-1`, `nodes rotate`, `nodes authorities`."""

    help = "Let machines in as nodes, revoke their certificates, rotate the authority that signs them."

    def add_arguments(self, parser: CommandParser) -> None:
        """One word of what to do, and for which node."""
        does = parser.add_subparsers(dest="do", required=True)
        enrol = does.add_parser("enrol", help="print a token that lets one machine in as a node, for 15 minutes")
        enrol.add_argument("node")
        enrol.add_argument("--fleet", required=True)
        enrol.add_argument("--tag", action="append", metavar="KEY=VALUE", help="a tag of the node; may be repeated")
        revoke = does.add_parser("revoke", help="revoke the certificates of a node; no console speaks to it any more")
        revoke.add_argument("node")
        does.add_parser("rotate", help="let a new authority sign; the one before goes when no node needs it")
        does.add_parser("authorities", help="show the authorities that count, and how many nodes depend on each")
        retire = does.add_parser("retire", help="believe an authority no more; nodes that still need it are cut off")
        retire.add_argument("authority", type=int)
        for each in (enrol, revoke, retire):
            each.add_argument("--reason", default="", help="for the audit log")

    def handle(self, *_: Any, **options: Any) -> None:
        """Do it as Spillway itself."""
        try:
            self.stdout.write(getattr(self, f"_{options['do']}")(options))
        except SpillwayError as error:
            raise CommandError(error.detail) from None

    def _enrol(self, options: dict[str, Any]) -> str:
        tags = None if options["tag"] is None else dict(each.partition("=")[::2] for each in options["tag"])
        row, text = tokens.make_token(
            actor=platform_actor(), node=options["node"], fleet=options["fleet"], tags=tags, reason=options["reason"]
        )
        until = f"Once, until {row.expires_at:%H:%M} UTC, on the machine that is to be {row.node_name}:"
        return f"{until}\n{tokens.command_with(text)}"

    def _revoke(self, options: dict[str, Any]) -> str:
        count = revoking.revoke_node(actor=platform_actor(), name=options["node"], reason=options["reason"])
        return f"{options['node']} is revoked ({count} certificates). Enrol it again to let it back in."

    def _rotate(self, _options: dict[str, Any]) -> str:
        row = rotating.rotate(actor=platform_actor())
        return f"Authority {row.pk} signs from now on. Nodes that answer go over within minutes."

    def _retire(self, options: dict[str, Any]) -> str:
        row = rotating.retire(actor=platform_actor(), authority_id=options["authority"], reason=options["reason"])
        return f"Authority {row.pk} is retired; {rotating.still_on(row)} nodes have to be enrolled again."

    def _authorities(self, _options: dict[str, Any]) -> str:
        rows = selectors.believed(platform_actor())
        lines = [
            f"{each.row.pk}  since {each.row.created_at:%Y-%m-%d}  {'signs' if each.signs else 'is replaced'}  "
            f"{each.nodes} nodes"
            for each in rows
        ]
        return "\n".join(lines) or "No node was enrolled yet, so there is no authority."
