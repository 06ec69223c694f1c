"""Tenants as rows: accounts, people and their roles, API tokens, hostname claims."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models


class Account(models.Model):
    """A tenant: an operator account runs the platform, a customer account manages its own routes."""

    class Kind(models.TextChoices):
        OPERATOR = "operator"
        CUSTOMER = "customer"

    name = models.CharField(max_length=63, unique=True)
    title = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    manager = models.CharField(max_length=63, blank=True, default="")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.title

    @property
    def is_operator(self) -> bool:
        """Whether the account runs the platform and so sees every account."""
        return self.kind == self.Kind.OPERATOR


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

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "user"), name="one_role_per_account"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.account}: {self.role}"


class ApiToken(models.Model):
    """A program's key: `sw_<key id>_<secret>`, shown once, kept as an HMAC with a numbered pepper."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=63)
    role = models.CharField(max_length=10, choices=Membership.Role.choices)
    key_id = models.CharField(max_length=16, unique=True)
    pepper = models.CharField(max_length=8)
    digest = models.CharField(max_length=64)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("account_id", "name")

    def __str__(self) -> str:
        return f"{self.name} (sw_{self.key_id}_…)"


class Hostname(models.Model):
    """A DNS name claimed by exactly one account; canonical: lower case, IDNA, no final dot, `*.` for a wildcard."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="hostnames")
    name = models.CharField(max_length=253, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class FailedSignIn(models.Model):
    """One sign-in that failed: the name that was tried (whether it exists or not) and from where."""

    username = models.CharField(max_length=150)
    address = models.CharField(max_length=45)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = (models.Index(fields=("username", "at")), models.Index(fields=("address", "at")))

    def __str__(self) -> str:
        return f"{self.username} from {self.address}"
