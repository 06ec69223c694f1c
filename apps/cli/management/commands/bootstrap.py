"""The beginning at the command line: the operator account, its first person and the first tokens."""

from __future__ import annotations

import getpass
import json
import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.bootstrap import found_customer, found_operator, replace_token
from apps.accounts.models import Account, Membership, User
from apps.audit.services import record

ACTOR = "manage.py bootstrap"


class Command(BaseCommand):
    """Safe to run again: it sets the password anew, unless told `--once`, and replaces tokens that it made before."""

    help = "Create the operator account and a person who signs in; with --tokens also API tokens, printed as JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        """The person's name, and whose tokens are wanted; the password comes by standard input, never by argument."""
        parser.add_argument("--username", default="admin")
        parser.add_argument("--once", action="store_true", help="change nothing where there is a person of this name")
        parser.add_argument("--tokens", action="store_true", help="print new tokens as JSON; they are shown only once")
        parser.add_argument("--customer", default="", help="with --tokens: also create one for this customer account")

    def handle(self, *_: Any, **options: Any) -> None:
        """Found what is asked for, in one transaction with its audit entries."""
        if options["once"] and User.objects.filter(username__iexact=options["username"]).exists():
            self.stdout.write(f"There is a person named {options['username']}; nothing was changed.")
            return
        with transaction.atomic():  # what is founded and its audit entry are there together or not at all
            self._found(options)

    def _found(self, options: dict[str, Any]) -> None:
        password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        try:
            operator = found_operator(username=options["username"], password=password)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        actor = Actor(ACTOR, operator, Membership.Role.ADMIN)
        record(actor=actor, action="create", kind="Person", object_id=None, label=options["username"])
        if not options["tokens"]:
            self.stdout.write(f"{options['username']} may sign in.")
            return
        tokens = {"operator_token": self._token(actor, operator)}
        if options["customer"]:
            customer = found_customer(name=options["customer"])
            tokens["customer_token"] = self._token(actor, customer)
        self.stdout.write(json.dumps(tokens))

    def _token(self, actor: Actor, account: Account) -> str:
        text = replace_token(account=account, name="bootstrap")
        after = {"name": "bootstrap", "role": Membership.Role.ADMIN.value}
        label = f"{account.name}/bootstrap"
        record(actor=actor, action="create", kind="Token", object_id=None, label=label, account=account, after=after)
        return text
