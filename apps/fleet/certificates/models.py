"""Rows: authorities of this installation, the certificates that they gave to nodes, and tokens that let a node in."""

from __future__ import annotations

from django.db import models


class Authority(models.Model):
    """A certificate authority of this installation, with its key, sealed.

    The newest signs, as soon as every console knows it. All that are not retired are believed, by consoles and by
    nodes. Consoles show nodes the client certificate of the oldest of them: every node knows that one. `sealed_client`
    is certificate and key (PEM) in one.
    """

    certificate = models.TextField()
    sealed_key = models.BinaryField()
    sealed_client = models.BinaryField()
    client_ends_at = models.DateTimeField()
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("pk",)
        verbose_name_plural = "authorities"

    def __str__(self) -> str:
        return f"authority {self.pk}"


class NodeCertificate(models.Model):
    """A certificate that was signed for a node, or one of other authorities that was revoked (`authority` null).

    `believes` is the SHA-256 of the authorities that were given with it. `node` is null once the node is deleted; its
    certificates stay revoked as long as they would count.
    """

    node = models.ForeignKey("fleet.Node", on_delete=models.SET_NULL, null=True, related_name="certificates")
    node_name = models.CharField(max_length=63)
    authority = models.ForeignKey(Authority, on_delete=models.PROTECT, null=True, related_name="certificates")
    sha256 = models.CharField(max_length=64)
    text = models.TextField(blank=True)
    believes = models.CharField(max_length=64, blank=True)
    issued_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=150, blank=True)
    renewals = models.PositiveSmallIntegerField(default=0)  # tries to put another one in its place
    next_renewal_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-pk",)
        constraints = (models.UniqueConstraint(fields=("sha256",), name="one_row_per_certificate"),)
        indexes = (models.Index(fields=("revoked_at", "ends_at")),)

    def __str__(self) -> str:
        return f"certificate {self.sha256[:12]} of {self.node_name}"


class EnrolmentToken(models.Model):
    """What lets one machine in as a node, once: the SHA-256 of its secret, and what it stands for.

    `key` is the SHA-256 of the public key that used it: the same one is answered again with the same certificate. The
    node gets its `tags`; null leaves those of a node that is there already.
    """

    digest = models.CharField(max_length=64, unique=True)
    node_name = models.CharField(max_length=63)
    fleet = models.ForeignKey("fleet.Fleet", on_delete=models.CASCADE, related_name="enrolment_tokens")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_from = models.CharField(max_length=45, blank=True)
    key = models.CharField(max_length=64, blank=True)
    tags = models.JSONField(null=True)
    certificate = models.ForeignKey(NodeCertificate, on_delete=models.SET_NULL, null=True, related_name="tokens")

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"enrolment token of {self.node_name}"
