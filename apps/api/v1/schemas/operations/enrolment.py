"""What each URL of the enrolment of nodes does."""

from __future__ import annotations

from dataclasses import replace

from apps.api.v1.schemas.nouns import platform
from apps.api.v1.schemas.operations.building import READ_REFUSALS, Table, detail, of_one

ROTATED = of_one("Rotate the authority that signs nodes' certificates", {201: platform.NodeAuthority})
OPERATIONS: Table = {
    ("nodes-enrolment-token", "POST"): of_one(
        "Create a token that lets a machine in as this node, once within 15 minutes",
        {201: platform.NodeToken},
        platform.CreateNodeToken,
    ),
    ("nodes-certificates", "GET"): replace(
        detail(platform.NodeCertificates, "the certificates of a node", version=False), refuses=(*READ_REFUSALS, 404)
    ),
    ("nodes-revoke", "POST"): of_one("Revoke the certificates of a node", {200: platform.NodeRevoked}),
    ("node-authorities", "GET"): replace(
        detail(platform.NodeAuthorities, "the authorities of nodes' certificates", version=False),
        refuses=READ_REFUSALS,
    ),
    ("node-authorities-rotate", "POST"): replace(
        ROTATED, refuses=tuple(status for status in ROTATED.refuses if status != 404)
    ),
    ("node-authorities-retire", "POST"): of_one(
        "Retire an authority; nodes with its certificates are cut off", {200: platform.NodeAuthority}
    ),
}
