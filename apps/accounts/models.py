"""Rows: accounts, people and their roles, invitations, API tokens, hostname claims, grants."""

from __future__ import annotations

import secrets

from django.contrib.auth.models import AbstractUser
from django.db import models

from apps.accounts.named import Named


def _challenge() -> str:
    return secrets.token_hex(16)


class Account(Named):
    """A tenant: an operator account runs the platform, a customer account manages its own routes.

    `quotas` maps a name of quota_bounds.py to a whole number and holds only what differs from the defaults. A suspended
    account keeps its traffic, its people and its tokens, but they may do nothing until it is resumed.
    """

    class Kind(models.TextChoices):
        OPERATOR = "operator"
        CUSTOMER = "customer"

    title = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    quotas = models.JSONField(default=dict)
    suspended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.title

    @property
    def is_operator(self) -> bool:
        """Whether the account runs the platform and so sees every account."""
        return self.kind == self.Kind.OPERATOR

    @property
    def suspended(self) -> bool:
        """Whether its people and programs may do nothing."""
        return self.suspended_at is not None


class User(AbstractUser):
    """A person who signs in; what they may do comes from their membership."""


class Membership(models.Model):
    """A person's role in an account: admin/owner, operator/editor or viewer."""

    class Role(models.TextChoices):
        ADMIN = "admin"
        EDITOR = "editor"
        VIEWER = "viewer"

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "user"), name="one_role_per_account"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.account}: {self.role}"


class Invitation(models.Model):
    """A way into an account for one person: a link with a secret that works once, kept as its SHA-256.

    `mailed` says that the link went to the address and nobody else saw it, so that whoever has it reads that mail.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=10, choices=Membership.Role.choices)
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.CharField(max_length=150)
    mailed = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.email} to {self.account}: {self.role}"


class ApiToken(models.Model):
    """A program's key: `sw_<key id>_<secret>`, shown once, kept as an HMAC with a numbered pepper.

    `scopes` such as `["routes:write", "*:read"]` narrow what the role allows, an empty list narrows nothing;
    `networks` (CIDR) say from where it works, an empty list is from everywhere.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=63)
    role = models.CharField(max_length=10, choices=Membership.Role.choices)
    key_id = models.CharField(max_length=16, unique=True)
    pepper = models.CharField(max_length=8)
    digest = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    networks = models.JSONField(default=list)
    created_by = models.CharField(max_length=150, blank=True, default="")
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    last_used_from = models.CharField(max_length=45, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("account_id", "name")

    def __str__(self) -> str:
        return f"{self.name} (sw_{self.key_id}_…)"


class Grant(Named):
    """What an operator lets an account use, in one row: hostname or tag, and with it routes, certificate, load tests.

    `hostname` (canonical, `*.` for every name below) verifies names of that domain for the account;
    `tag` (`key=value`) shares every pool and zone that carries it. Exactly one of the two is set.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="grants")
    hostname = models.CharField(max_length=253, blank=True, default="")
    tag = models.CharField(max_length=127, blank=True, default="")
    may_load_test = models.BooleanField(default=True)
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.account}: {self.hostname or self.tag}"


class Hostname(models.Model):
    """A DNS name that an account claims; canonical: lower case, IDNA, no final dot, `*.` or `**.` for a wildcard.

    Many accounts may claim one name, one of them has verified it.

    `verification` says how the account showed that the name is its own, blank until it did; routes of an unverified
    name are kept but not served. `explicit` tells a claim that was made by itself from one that came with a route.
    `waits_since` is when it was verified no more; one that never was waits since it was made.
    A released claim is kept until its cooldown is over (hostnames/claims.py), then anybody may have the name.
    """

    class Verification(models.TextChoices):
        NONE = ""
        DNS = "dns"
        HTTP = "http"
        OPERATOR = "operator"
        GRANT = "grant"

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="hostnames")
    name = models.CharField(max_length=253, db_index=True)
    challenge = models.CharField(max_length=64, default=_challenge)
    verification = models.CharField(max_length=8, choices=Verification.choices, blank=True, default="")
    verified_at = models.DateTimeField(null=True)
    waits_since = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    last_check_message = models.CharField(max_length=400, blank=True, default="")
    explicit = models.BooleanField(default=False)
    released_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(fields=("account", "name"), name="claimed_once_by_account"),
            models.UniqueConstraint(
                fields=("name",), condition=~models.Q(verification=""), name="verified_by_one_account"
            ),
        )

    def __str__(self) -> str:
        return self.name


class FailedSignIn(models.Model):
    """One try that did not succeed (yet): what was tried, for which name (whether it exists or not), from where."""

    class Kind(models.TextChoices):
        PASSWORD = "password"  # noqa: S105 - a word for what was tried
        CODE = "code"
        MAIL = "mail"
        ENROL = "enrol"

    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.PASSWORD)
    username = models.CharField(max_length=150)
    address = models.CharField(max_length=45)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = (models.Index(fields=("username", "at")), models.Index(fields=("address", "at")))

    def __str__(self) -> str:
        return f"{self.username} from {self.address}"
