"""The shape of an AlertChannel: whom alerts are told, where, and when."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from apps.calendars.zones import zone_names
from apps.compiler.grammar import GrammarError
from apps.core.called_urls import Refused, read_url
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import SORTED, About, Distinct, Shape
from apps.definitions.shapes.base.words import Boolean, at_most, matching, one_of, text, whole
from apps.definitions.shapes.operations.alert_watches import CRITICAL, SEVERITIES, WARNING

EMAIL, WEBHOOK, ALERTMANAGER = "email", "webhook", "alertmanager"
SLACK, MATTERMOST, DISCORD, TEAMS = "slack", "mattermost", "discord", "teams"
PAGERDUTY, OPSGENIE = "pagerduty", "opsgenie"
# Chats give out a URL to post to; whoever knows it may, so it is a secret.
CHATS = (SLACK, MATTERMOST, DISCORD, TEAMS)
TYPES = {
    EMAIL: "Email",
    WEBHOOK: "Signed webhook",
    SLACK: "Slack",
    MATTERMOST: "Mattermost",
    DISCORD: "Discord",
    TEAMS: "Microsoft Teams",
    PAGERDUTY: "PagerDuty",
    OPSGENIE: "Opsgenie",
    ALERTMANAGER: "Alertmanager",
}
# What each type needs: `to`, `url`, `secret`; a field with a question mark may be left out.
NEEDS: dict[str, tuple[str, ...]] = {
    EMAIL: ("to",),
    WEBHOOK: ("url", "secret"),
    **dict.fromkeys(CHATS, ("secret",)),
    PAGERDUTY: ("secret", "url?"),
    OPSGENIE: ("secret", "url?"),
    ALERTMANAGER: ("url", "secret?"),
}
MOST_ADDRESSES = 10
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
_clock = matching(_CLOCK, "clock", "Write a time of day such as 22:00.", 5)


# Stricter than the standard: whatever could begin another header, recipient or command is no address.
_ADDRESS = r"[A-Za-z0-9._%+'-]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
_address = matching(_ADDRESS, "email", "Write an e-mail address such as ops@example.com.", 254)


def _url(value: object) -> str:
    text_ = value if isinstance(value, str) else ""
    try:
        read_url(text_, schemes=("https", "http"))
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    return text_


def _secret(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[!-~]{1,2048}", value):
        raise GrammarError("secret", "Use 1 to 2 048 printable ASCII characters, without blanks.")
    return value


def _zone(value: object) -> str:
    if not isinstance(value, str) or value not in zone_names():
        raise GrammarError("zone", "Use a time zone such as Europe/Berlin or UTC.")
    return value


@dataclass(frozen=True, slots=True)
class QuietHours(Shape):
    """When a channel is told of critical alerts alone; the others are told when it ends."""

    start: Annotated[
        str, text(_clock, "a time of day", 5, f"^{_CLOCK}$"), About("When it begins.", "Quiet from", "", "22:00")
    ]
    end: Annotated[
        str, text(_clock, "a time of day", 5, f"^{_CLOCK}$"), About("When it ends.", "Quiet until", "", "07:00")
    ]
    zone: Annotated[str, text(_zone, "a time zone", 63), About("The time zone.", "Time zone", "")] = "UTC"

    def contradictions(self) -> Iterator[FieldError]:
        """An hour of no length would be no quiet at all, or quiet for ever."""
        if self.start == self.end:
            yield FieldError("/end", "equal", "End at another time than the start.")


@dataclass(frozen=True, slots=True)
class AlertChannelSpec(Shape):
    """Whom alerts are told, where, and when."""

    type: Annotated[
        str, one_of(labels=TYPES), About("What receives the messages.", "Type", "", EMAIL, missing="Choose a type.")
    ]
    to: Annotated[
        tuple[Annotated[str, text(_address, "an e-mail address", 254)], ...],
        at_most(MOST_ADDRESSES, "addresses in one channel"),
        Distinct(),
        About(
            "Mail addresses. Customers: of people of the account, or at a domain that the account has verified.",
            "Mail to",
            "Addresses of people of your account, or at a domain that it has verified.",
            "ops@example.com",
        ),
    ] = ()
    url: Annotated[
        Annotated[str, text(_url, "a URL", 2048)] | None,
        About(
            "Where messages are posted. PagerDuty, Opsgenie: only for another region than the USA.",
            "URL",
            "Signed webhook and Alertmanager: their address. PagerDuty and Opsgenie: only outside the USA, such as "
            "https://events.eu.pagerduty.com/v2/enqueue or https://api.eu.opsgenie.com/v2/alerts.",
        ),
    ] = None
    secret: Annotated[
        Annotated[str, text(_secret, "a secret", 2048)] | None,
        About(
            "What the type needs to be let in; sealed when saved and never shown again. Chats: the URL of their "
            "incoming webhook. PagerDuty: the integration key. Opsgenie: the API key. Alertmanager: a bearer token, or "
            "user:password. Webhook: whsec_ and 24 to 64 bytes as base64.",
            "Secret",
            "Chats: the URL that they give you. PagerDuty, Opsgenie: the key. Signed webhook: whsec_ and at least "
            "24 bytes as base64. Alertmanager: empty, a token, or user:password.",
            secret=True,
        ),
    ] = None
    severities: Annotated[
        tuple[Annotated[str, one_of(labels=SEVERITIES)], ...],
        Distinct(),
        SORTED,
        About("Of which alerts the channel is told.", "Severities"),
    ] = (CRITICAL, WARNING)
    quiet: Annotated[QuietHours | None, About("Hours in which only critical alerts are told.", "Quiet hours")] = None
    wait_minutes: Annotated[
        int,
        whole(0, 1440),
        About(
            "Escalation: the channel is told only of alerts that nobody has acknowledged for so many minutes.",
            "Only after, min",
            "Escalation: told only of alerts that nobody acknowledged for so long. 0: at once.",
        ),
    ] = 0
    enabled: Annotated[Boolean, About("Whether the channel is told anything.", "Enabled", "")] = True

    def contradictions(self) -> Iterator[FieldError]:
        """Each type has its own fields: what it would ignore is refused, what it needs must be there.

        A secret may be left out where one is stored: the service knows.
        """
        needs = NEEDS[self.type]
        for field, sent in (("to", self.to), ("url", self.url), ("secret", self.secret)):
            known = {each.rstrip("?") for each in needs}
            if sent and field not in known:
                yield FieldError(f"/{field}", "type", f"A channel of type {self.type} has no {field}; leave it out.")
            if not sent and field in needs and field != "secret":
                yield FieldError(f"/{field}", "missing", f"Fill in {field}: a channel of type {self.type} needs it.")
        if not self.severities:
            yield FieldError("/severities", "missing", "Choose at least one severity.")
        if self.secret:
            yield from _secret_errors(self.type, self.secret)


def _secret_errors(type_: str, secret: str) -> Iterator[FieldError]:
    """What a secret of this type cannot be; the secret itself is never repeated."""
    if type_ == WEBHOOK and not _signs(secret):
        detail = "Use whsec_ followed by 24 to 64 random bytes as base64, as Standard Webhooks has it."
        yield FieldError("/secret", "secret", detail)
    elif type_ in CHATS and not _is_url(secret):
        yield FieldError("/secret", "secret", "Use the URL of the incoming webhook that the chat gives you.")


def _is_url(secret: str) -> bool:
    try:
        read_url(secret, schemes=("https", "http"))
    except Refused:
        return False
    return True


def _signs(secret: str) -> bool:
    try:
        return secret.startswith("whsec_") and 24 <= len(base64.b64decode(secret[6:], validate=True)) <= 64
    except (binascii.Error, ValueError):
        return False
