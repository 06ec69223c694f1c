"""Certificates for AWS: imported into ACM; the private key travels beside the document, as a variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.model.shared import Certificate
from apps.compiler.targets.terraform.aws.naming import tags
from apps.compiler.targets.terraform.draft import Draft, Resource
from apps.compiler.targets.terraform.expressions import key_variable, resource_name, variable
from apps.compiler.targets.terraform.pem import parts_of


@dataclass(slots=True)
class Certificates:
    """Certificates of the draft, imported when a listener first names them."""

    draft: Draft
    certificates: Mapping[str, Certificate]
    _made: dict[str, Resource] = field(default_factory=dict)

    def certificate(self, certificate_id: str) -> Resource:
        """The imported certificate."""
        if certificate_id not in self._made:
            self._made[certificate_id] = self._make(self.certificates[certificate_id])
        return self._made[certificate_id]

    def _make(self, certificate: Certificate) -> Resource:
        parts = parts_of(certificate.pem)
        name = key_variable(certificate.id)
        self.draft.variables.append(name)
        body: dict[str, Any] = {
            "certificate_body": parts.body,
            "private_key": variable(name),
            "tags": tags(certificate.id, certificate.account),
            "lifecycle": {"create_before_destroy": True},
        }
        if parts.chain:
            body["certificate_chain"] = parts.chain
        return self.draft.add("aws_acm_certificate", resource_name(certificate.id), certificate.id, body)
