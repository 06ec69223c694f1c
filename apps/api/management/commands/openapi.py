"""`manage.py openapi`: write what programs are told of the API anew; the tests compare it with what is checked in."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from apps.api import terraform, terraform_pages
from apps.api.v1.description import CHECKED_IN
from apps.api.v1.openapi import document, text_of


class Command(BaseCommand):
    """Writes apps/api/openapi.json, and deploy/terraform/kinds.json with the pages of the provider."""

    help = __doc__ or ""

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Write all of it."""
        made, kinds = document(), terraform.kinds()
        CHECKED_IN.write_text(text_of(made))
        terraform.CHECKED_IN.write_text(terraform.text_of(kinds))
        for path, text in terraform_pages.pages().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.stdout.write(
            f"{CHECKED_IN.name}: {len(made['paths'])} paths, {len(made['components']['schemas'])} schemas; "
            f"{terraform.CHECKED_IN.name}: {len(kinds)} kinds"
        )
