"""Resets MFA: takes the second factor away from somebody who lost phone and codes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from apps.accounts.actors import actor_of_user, platform_actor
from apps.accounts.models import User
from apps.accounts.sign_in.second_factor import reset_mfa
from apps.audit.services import record


class Command(BaseCommand):
    """The person then signs in with the password, and sets up a new one."""

    help = "Remove every second factor and recovery code of a person; the audit log of their account says so."

    def add_arguments(self, parser: CommandParser) -> None:
        """Who, and why."""
        parser.add_argument("username")
        parser.add_argument("--reason", default="", help="how you verified the person's identity")

    @transaction.atomic
    def handle(self, *_: Any, **options: Any) -> None:
        """Forget and record."""
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['username']}.")
        count, member = reset_mfa(user=user), actor_of_user(user)
        record(
            actor=platform_actor(),
            action="remove_second_factor",
            kind="Person",
            object_id=user.pk,
            label=user.get_username(),
            account=member.account if member else None,
            after={"factor": "all", "count": count},
            reason=options["reason"],
        )
        self.stdout.write(f"{user.get_username()} signs in with the password alone now ({count} removed).")
