"""Rows: certificate authorities that speak ACME, and the order by which an automatic certificate is kept fresh."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Account
from apps.accounts.named import Named


class CertificateAuthority(Named):
    """Whom automatic certificates are ordered from, lowest `position` first, and our account there.

    `sealed_hmac_key` binds our account to one at the authority (external account binding). `sealed_account_key` signs
    what we ask; `account_url` is our account there, blank until it was made. After a refusal for asking too often
    nobody asks before `paused_until`.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="certificate_authorities")
    directory_url = models.CharField(max_length=2048)
    contacts = models.JSONField(default=list)
    terms_agreed = models.BooleanField(default=False)
    external_key_id = models.CharField(max_length=256, blank=True, default="")
    sealed_hmac_key = models.BinaryField(null=True)
    trusted_ca = models.TextField(blank=True, default="")
    profile = models.CharField(max_length=63, blank=True, default="")
    position = models.PositiveSmallIntegerField(default=10)
    for_customers = models.BooleanField(default=True)
    sealed_account_key = models.BinaryField(null=True)
    account_url = models.CharField(max_length=2048, blank=True, default="")
    paused_until = models.DateTimeField(null=True)


class CertificateOrder(models.Model):
    """How an automatic certificate is kept fresh: one row each, so that no order is made twice.

    `state` says what comes next, from `next_at` on. While an order is under way, `hostnames` are what it is for,
    `order_url` is where it stands at the authority, `sealed_key` the private key of the certificate to be, and
    `challenges` are what nodes and zones answer (`{hostname, kind, token, answer, url, authorization}`; of dns-01
    `answer` is the value of the TXT record `name`). `pushes` are what must be live before the authority looks:
    `{fleets: {id: generation}, zones: {id: generation}}`. `failures` counts refused orders in a row, `error` says why
    in words. A certificate that was issued is due at `renew_at`; the authority may bring that forward. `claimed_until`
    is a lease by database time, `attempt` its fence.
    """

    class State(models.TextChoices):
        """What comes next."""

        WAITING = "waiting"  # for its time: the first order, or a renewal
        ANSWERING = "answering"  # until every node and resolver gives the answers
        VALIDATING = "validating"  # the authority looks
        FINALIZING = "finalizing"  # the authority signs

    certificate = models.OneToOneField("definitions.Certificate", on_delete=models.CASCADE, related_name="order")
    authority = models.ForeignKey(CertificateAuthority, on_delete=models.SET_NULL, null=True, related_name="orders")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    hostnames = models.JSONField(default=list)
    order_url = models.CharField(max_length=2048, blank=True, default="")
    sealed_key = models.BinaryField(null=True)
    challenges = models.JSONField(default=list)
    pushes = models.JSONField(default=dict)
    began_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_index=True)
    failures = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=600, blank=True, default="")
    failed_at = models.DateTimeField(null=True)
    issued_by = models.CharField(max_length=63, blank=True, default="")
    issued_at = models.DateTimeField(null=True)
    renew_at = models.DateTimeField(null=True)
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"order of {self.certificate}"
