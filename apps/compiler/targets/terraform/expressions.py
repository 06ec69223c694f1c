"""The words for Terraform: texts that mean themselves, references to what Terraform will know, names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from apps.compiler.targets.terraform.document import terraform_name

_MARKS = re.compile(r"[$%]")
_SIGNS = re.compile(r"[^A-Za-z0-9]")
_DIGEST = 8
_RENEWED = 5


def literal(text: str) -> str:
    """A text that people wrote, so that Terraform reads no template in it: `${x}` stays `${x}`.

    Every `$` and `%` becomes an interpolation of itself as soon as one of them could open a template: doubling
    (`$${`) would still show a token to those who look for `${`.
    """
    if "${" not in text and "%{" not in text:
        return text
    return _MARKS.sub(lambda mark: f'${{"{mark[0]}"}}', text)


def reference(kind: str, name: str, attribute: str) -> str:
    """`aws_lb`, `lb_3`, `arn` → `${aws_lb.lb_3.arn}`."""
    return f"${{{kind}.{name}.{attribute}}}"


def variable(name: str) -> str:
    """`crt_3_key` → `${var.crt_3_key}`."""
    return f"${{var.{name}}}"


def list_of(*expressions: str) -> str:
    """`${a}`, `${b}` → `${[a, b]}`."""
    return "${[" + ", ".join(each.removeprefix("${").removesuffix("}") for each in expressions) + "]}"


def key_variable(certificate_id: str) -> str:
    """The sensitive variable that carries a certificate's private key: `crt-3` → `crt_3_key`."""
    return f"{terraform_name(certificate_id)}_key"


def resource_name(*parts: str) -> str:
    """A Terraform name from ids and facts: `lst-1`, `10.0.0.0/8` → `lst_1_10_0_0_0_8`."""
    return _SIGNS.sub("_", "_".join(parts))


def cloud_name(stack_id: str, *parts: str, longest: int) -> str:
    """What the cloud calls it: `stk-3`, `lb-3` → `sw-stk3-lb-3`; one that is too long ends in a digest of itself."""
    whole = "-".join(("sw", stack_id.replace("-", ""), *parts))
    if len(whole) <= longest:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGEST]
    return f"{whole[: longest - _DIGEST - 1].rstrip('-')}-{digest}"


def renewed_name(stack_id: str, *parts: str, forced_by: Sequence[object], longest: int) -> dict[str, Any]:
    """The name and lifecycle of what is made anew before the old one goes: two cannot have one name meanwhile.

    `forced_by` are the values whose change forces that; each gives another name. One that stands keeps the name that
    it has (`ignore_changes`): Terraform asks for this one only where it makes the thing anew.
    """
    digest = hashlib.sha256("\n".join(map(str, forced_by)).encode()).hexdigest()[:_RENEWED]
    return {
        "name": cloud_name(stack_id, *parts, digest, longest=longest),
        "lifecycle": {"create_before_destroy": True, "ignore_changes": ["name"]},
    }
