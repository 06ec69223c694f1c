"""The shape of a CloudAccount: an account at a cloud, by reference to its credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from apps.compiler.model.stack import Cloud
from apps.core.errors import FieldError
from apps.definitions.shapes.base.outside import credentials_reference, endpoint
from apps.definitions.shapes.base.shape import About, Data, Shape
from apps.definitions.shapes.base.words import matching, text, word

CLOUDS = {Cloud.AWS: "AWS", Cloud.GOOGLE: "Google"}
PROJECT = matching(
    r"[a-z][a-z0-9-]{4,28}[a-z0-9]",
    "project",
    "Write the project ID: 6 to 30 lowercase letters, digits and hyphens.",
)


@dataclass(frozen=True, slots=True)
class CloudAccountSpec(Shape):
    """An account at a cloud; `credentials` says where they are kept, never what they are."""

    cloud: Annotated[Cloud, word(Cloud, CLOUDS), About("The cloud provider.", "Cloud", "", "aws")]
    credentials: Annotated[
        str,
        text(credentials_reference, "`env:NAME`, `profile:NAME` or `role:ARN`", 2048, blank=True),
        About(
            "A reference, never a secret: env:PROD reads SPILLWAY_CLOUD_PROD_… from the "
            "workers' environment; profile:NAME; role:ARN. "
            "Default: the identity of the machine.",
            "Credentials",
            example="env:PROD",
            note="env:NAME, profile:NAME or role:ARN",
        ),
    ] = ""
    project: Annotated[
        str,
        text(PROJECT, "a project's id", 63, blank=True),
        About("Google only.", "Project", note="Google's id of the project"),
    ] = ""
    endpoint_url: Annotated[
        str,
        text(endpoint, "a URL", 400, blank=True),
        About(
            "Only for private clouds and tests: a different API URL. Set the same URL in the workers' "
            "environment, in SPILLWAY_CLOUD_PROD_ENDPOINT for env:PROD.",
            "Endpoint",
            note="instead of the cloud's own API",
        ),
    ] = ""

    @classmethod
    def together(cls, sent: Data) -> list[FieldError]:
        """What only one of the clouds has."""
        credentials, field_errors = str(sent.get("credentials", "")), []
        if sent.get("cloud") == Cloud.AWS and sent.get("project"):
            field_errors.append(FieldError("/project", "cloud", "AWS has no projects; leave this out."))
        if sent.get("cloud") == Cloud.GOOGLE and not sent.get("project"):
            field_errors.append(FieldError("/project", "missing", "Fill in the id of the Google project."))
        if sent.get("cloud") == Cloud.GOOGLE and credentials and not credentials.startswith("env:"):
            detail = "For Google, use env:NAME (a service account's JSON), or leave this out."
            field_errors.append(FieldError("/credentials", "cloud", detail))
        return field_errors
