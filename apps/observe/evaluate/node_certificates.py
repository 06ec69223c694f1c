"""Whether the certificate that a node shows still counts: revoked, ended, about to end."""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.observe.evaluate.conditions import Reason, Type, Verdict

# Enrolled nodes are renewed ten days before the end: with a week left something has failed for three days.
WARNED_BEFORE = timedelta(days=7)


def evaluate_certificate(node_id: int, ends_at: datetime | None, instant: datetime, *, revoked: bool) -> list[Verdict]:
    """CertificateValid of a node; no verdict on one that shows no certificate."""
    if revoked:
        message = "Its certificate was revoked, so Spillway does not speak to it. Enrol it again, or delete it."
        return [_verdict(node_id, False, Reason.CERTIFICATE_REVOKED, message)]
    if ends_at is None:
        return []
    day = f"{ends_at:%Y-%m-%d}"
    if ends_at <= instant:
        message = f"Its certificate ended on {day}. Enrol it again, or give it a new certificate."
        return [_verdict(node_id, False, Reason.CERTIFICATE_ENDED, message)]
    if ends_at - instant < WARNED_BEFORE:
        message = f"Its certificate ends on {day} and was not renewed. Enrol it again, or give it a new certificate."
        return [_verdict(node_id, False, Reason.CERTIFICATE_ENDS, message)]
    return [_verdict(node_id, True, Reason.CERTIFICATE_VALID, f"Its certificate is valid until {day}.")]


def _verdict(node_id: int, status: bool, reason: Reason, message: str) -> Verdict:
    return Verdict("node", node_id, Type.CERTIFICATE_VALID, status, reason, message)
