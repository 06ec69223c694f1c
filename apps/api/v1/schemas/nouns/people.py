"""Hostnames, memberships, invitations and tokens."""

from __future__ import annotations

from rest_framework import serializers

from apps.accounts.models import Hostname as HostnameRow
from apps.accounts.roles import WORDS
from apps.api.v1.schemas import words

ROLES = sorted({said for of_kind in WORDS.values() for said in of_kind.values()})
VERSION = 2**31


class HostnameChallenge(words.Shown):
    """What shows that a name is the account's: a TXT record, or a file with the token at the URL."""

    txt_name = serializers.CharField()
    txt_value = serializers.CharField()
    url = serializers.CharField(allow_null=True)
    token = serializers.CharField()


class Hostname(words.Shown):
    """A claimed name: how it stands, and what verifies it."""

    id = words.ident()
    name = words.hostname()
    account = words.name(source="account.name")
    state = words.word(["waiting", "verified", "released"])
    verification = words.word([value for value in HostnameRow.Verification.values if value], allow_null=True)
    verified_at = words.instant(allow_null=True)
    challenge = HostnameChallenge()
    checked_at = words.instant(allow_null=True)
    last_check_message = words.text(400)
    released_at = words.instant(allow_null=True)
    version = words.whole(1, VERSION)
    created_at = words.instant()


class HostnameClaim(words.Sent):
    """A name that an account wants."""

    name = words.hostname()
    account = words.name(required=False)


class ClaimPlan(words.Shown):
    """What a claim would do."""

    stored = serializers.BooleanField()
    name = words.hostname()
    account = words.name()
    verification = words.word([value for value in HostnameRow.Verification.values if value], allow_null=True)


class ReleasePlan(words.Shown):
    """What a release would do: nothing while routes use the name."""

    stored = serializers.BooleanField()
    routes = words.count()


class Word(words.Sent):
    """An operator's word, and why."""

    reason = words.text(400, required=False)


class Membership(words.Shown):
    """A person in an account."""

    id = words.ident()
    account = words.name(source="account.name")
    person = serializers.CharField(source="user.username")
    email = words.text(254, source="user.email")
    role = words.word(ROLES)
    created_at = words.instant()
    last_signed_in_at = words.instant(allow_null=True, source="user.last_login")
    version = words.whole(1, VERSION)


class RoleChange(words.Sent):
    """Another role."""

    role = words.word(ROLES)


class Invitation(words.Shown):
    """Somebody who may come in; the link is shown once, to whoever invites."""

    id = words.ident()
    account = words.name(source="account.name")
    email = serializers.CharField()
    role = words.word(ROLES)
    invited_by = serializers.CharField()
    mailed = serializers.BooleanField()
    created_at = words.instant()
    expires_at = words.instant()
    version = words.whole(1, VERSION)


class NewInvitation(Invitation):
    """An invitation with its link, null when it was mailed."""

    link = serializers.CharField(allow_null=True)


class CreateInvitation(words.Sent):
    """Who is invited, to what; `mail` sends the link."""

    email = serializers.CharField(max_length=254)
    role = words.word(ROLES)
    account = words.name(required=False)
    mail = serializers.BooleanField(required=False)


class Token(words.Shown):
    """A token without its text."""

    id = words.ident()
    account = words.name(source="account.name")
    name = serializers.CharField()
    key_id = serializers.CharField()
    role = words.word(ROLES)
    scopes = serializers.ListField(child=serializers.CharField())
    networks = serializers.ListField(child=serializers.CharField())
    created_by = words.text(150)
    created_at = words.instant()
    expires_at = words.instant(allow_null=True)
    last_used_at = words.instant(allow_null=True)
    last_used_from = words.text(45)
    version = words.whole(1, VERSION)


class NewToken(Token):
    """A token with its text, which is shown this once."""

    token = serializers.CharField()


class CreateToken(words.Sent):
    """What a token may do, from where, for how long."""

    name = serializers.CharField(max_length=63)
    role = words.word(ROLES)
    account = words.name(required=False)
    scopes = serializers.ListField(child=serializers.CharField(max_length=80), required=False)
    networks = serializers.ListField(child=serializers.CharField(max_length=50), required=False)
    expires_in_days = words.whole(1, 365, required=False)
