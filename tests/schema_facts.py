"""What Terraform's providers take, so that documents can be checked without one: a reduced copy of their schemas.

`terraform providers schema -json` says them; `python -m tests.schema_facts aws <resource schemas>.json` keeps what our
documents use, one resource type on each line of `tests/data/terraform-aws-schema.json`. `DOCUMENTED` holds types that
a copy at hand did not have, written from the provider's documentation.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from apps.compiler.targets.terraform.document import StackDocument

DATA = Path(__file__).parent / "data"
KEPT = {
    "aws": (
        "aws_acm_certificate", "aws_eip", "aws_globalaccelerator_accelerator", "aws_globalaccelerator_endpoint_group",
        "aws_globalaccelerator_listener", "aws_lb", "aws_lb_listener", "aws_lb_listener_certificate",
        "aws_lb_listener_rule", "aws_lb_target_group", "aws_lb_target_group_attachment", "aws_route53_record",
        "aws_route53_zone", "aws_security_group", "aws_vpc_security_group_egress_rule",
        "aws_vpc_security_group_ingress_rule",
    ),
    "google": (
        "google_compute_address", "google_compute_backend_service", "google_compute_forwarding_rule",
        "google_compute_global_address", "google_compute_global_forwarding_rule", "google_compute_health_check",
        "google_compute_network_endpoint", "google_compute_network_endpoint_group", "google_compute_network_endpoints",
        "google_compute_ssl_certificate", "google_compute_ssl_policy", "google_compute_target_http_proxy",
        "google_compute_target_https_proxy", "google_compute_url_map", "google_dns_managed_zone",
        "google_dns_record_set",
    ),
}  # fmt: skip
# https://registry.terraform.io/providers/hashicorp/google/latest/docs/resources/compute_target_tcp_proxy
DOCUMENTED: dict[str, dict[str, Any]] = {
    "google_compute_target_tcp_proxy": {
        "attributes": {
            "backend_service": {"required": True, "type": "string"},
            "creation_timestamp": {"computed": True, "type": "string"},
            "description": {"optional": True, "type": "string"},
            "id": {"computed": True, "optional": True, "type": "string"},
            "name": {"required": True, "type": "string"},
            "project": {"computed": True, "optional": True, "type": "string"},
            "proxy_bind": {"computed": True, "optional": True, "type": "bool"},
            "proxy_header": {"optional": True, "type": "string"},
            "proxy_id": {"computed": True, "type": "number"},
            "self_link": {"computed": True, "type": "string"},
        }
    }
}
META_ARGUMENTS = {
    "lifecycle": {"prevent_destroy", "create_before_destroy", "ignore_changes", "replace_triggered_by"},
    "depends_on": set[str](),
}
_REFERENCE = re.compile(r"\b((?:aws|google)_[a-z0-9_]+)\.([A-Za-z0-9_-]+)(?:\.([a-z0-9_]+))?")
_EXPRESSION = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"\bvar\.([A-Za-z0-9_]+)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

Facts = Mapping[str, Any]


@cache
def facts_of(cloud: str) -> Facts:
    """Resource types of `aws` or `google` with their attributes and blocks."""
    facts: dict[str, Any] = json.loads((DATA / f"terraform-{cloud}-schema.json").read_text())
    return facts | {kind: fact for kind, fact in DOCUMENTED.items() if kind.startswith(cloud)}


def errors_in(document: StackDocument, facts: Facts) -> list[str]:
    """Everything that the provider would not take, with where it stands; empty for a good document."""
    errors = []
    for kind, named in document.resources.items():
        if kind not in facts:
            errors.append(f"{kind}: there is no such type")
            continue
        for name, body in named.items():
            where = f"{kind}.{name}"
            if not _NAME.fullmatch(name):
                errors.append(f"{where}: this is no name")
            own = {key: value for key, value in body.items() if key not in META_ARGUMENTS}
            errors += _in_block(where, own, facts[kind])
            errors += _in_meta_arguments(where, body, document)
    errors += _in_references(document, facts)
    errors += [f"{address}: it has no owner" for address in _addresses(document) if not document.owners.get(address)]
    return errors


def _addresses(document: StackDocument) -> set[str]:
    return {f"{kind}.{name}" for kind, named in document.resources.items() for name in named}


def _in_block(where: str, body: Mapping[str, Any], fact: Mapping[str, Any]) -> Iterator[str]:
    attributes, blocks = fact.get("attributes", {}), fact.get("block_types", {})
    for name, value in body.items():
        if name in attributes:
            yield from _in_attribute(f"{where}.{name}", value, attributes[name])
        elif name in blocks:
            yield from _in_blocks(f"{where}.{name}", value, blocks[name])
        else:
            yield f"{where}.{name}: there is no such attribute or block"
    for name, attribute in attributes.items():
        if attribute.get("required") and body.get(name) is None:
            yield f"{where}.{name}: it is required"
    for name, block in blocks.items():
        if block.get("min_items") and not body.get(name):
            yield f"{where}.{name}: it is required"


def _in_attribute(where: str, value: Any, attribute: Mapping[str, Any]) -> Iterator[str]:
    if attribute.get("computed") and not attribute.get("optional"):
        yield f"{where}: the provider alone says it"
    if attribute.get("deprecated"):
        yield f"{where}: it is deprecated"
    if not _fits(value, attribute.get("type", "string")):
        yield f"{where}: {value!r} is no {attribute['type']}"


def _fits(value: Any, kind: Any) -> bool:
    """Whether JSON data is of a Terraform type; an expression may be of any."""
    if isinstance(value, str) and value.startswith("${") and value.endswith("}"):
        return True
    if isinstance(kind, str):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {"string": isinstance(value, str), "number": is_number, "bool": isinstance(value, bool)}.get(kind, True)
    shape, inner = kind
    if shape in ("list", "set"):
        unique = shape == "list" or len({json.dumps(each, sort_keys=True) for each in value}) == len(value)
        return isinstance(value, list) and unique and all(_fits(each, inner) for each in value)
    if shape == "map":
        return isinstance(value, dict) and all(_fits(each, inner) for each in value.values())
    return isinstance(value, dict) and all(key in inner and _fits(each, inner[key]) for key, each in value.items())


def _in_blocks(where: str, value: Any, block: Mapping[str, Any]) -> Iterator[str]:
    inner = block.get("block", {})
    if block.get("nesting_mode") == "single":
        if isinstance(value, dict):
            yield from _in_block(where, value, inner)
        else:
            yield f"{where}: it is one block"
        return
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        yield f"{where}: it is a list of blocks"
        return
    lowest, highest = block.get("min_items", 0), block.get("max_items", len(value))
    if not lowest <= len(value) <= highest:
        yield f"{where}: {len(value)} blocks are not {lowest} to {highest}"
    for each in value:
        yield from _in_block(where, each, inner)


def _in_meta_arguments(where: str, body: Mapping[str, Any], document: StackDocument) -> Iterator[str]:
    unknown = set(body.get("lifecycle", {})) - META_ARGUMENTS["lifecycle"]
    yield from (f"{where}.lifecycle.{name}: there is no such setting" for name in sorted(unknown))
    missing = set(body.get("depends_on", ())) - _addresses(document)
    yield from (f"{where}.depends_on: {address} is not in the document" for address in sorted(missing))


def _in_references(document: StackDocument, facts: Facts) -> Iterator[str]:
    """Every expression names something of the document, and an attribute that its type has."""
    known = _addresses(document)
    for text in _texts([document.resources, document.outputs]):
        for expression in _EXPRESSION.findall(text):
            for kind, name, attribute in _REFERENCE.findall(expression):
                if f"{kind}.{name}" not in known:
                    yield f"{kind}.{name} is referred to and not in the document"
                elif attribute and attribute not in facts[kind].get("attributes", {}):
                    yield f"{kind}.{name}.{attribute} is referred to, which {kind} does not have"
            missing = set(_VARIABLE.findall(expression)) - set(document.variables)
            yield from (f"var.{name} is referred to and not declared" for name in sorted(missing))


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value)


def reduced(cloud: str, schemas: Mapping[str, Any]) -> str:
    """The text of our copy: what our documents use of the provider's resource schemas."""
    kept = {kind: schemas[kind] for kind in KEPT[cloud] if kind in schemas}
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(_reduced(kept[kind]), sort_keys=True)}" for kind in kept)
    return f"{{\n{lines}\n}}\n"


def _reduced(fact: Mapping[str, Any]) -> dict[str, Any]:
    """A block without prose; `block` of a resource schema is the resource's own."""
    block = fact.get("block", fact)
    words = ("computed", "deprecated", "optional", "required", "type")
    attributes = {
        name: {word: value[word] for word in words if value.get(word)}
        for name, value in block.get("attributes", {}).items()
    }
    blocks = {
        name: {word: value[word] for word in ("max_items", "min_items", "nesting_mode") if value.get(word)}
        | {"block": _reduced(value["block"])}
        for name, value in block.get("block_types", {}).items()
        if name != "timeouts"
    }
    return {key: value for key, value in (("attributes", attributes), ("block_types", blocks)) if value}


if __name__ == "__main__":
    of_cloud, source = sys.argv[1:]
    (DATA / f"terraform-{of_cloud}-schema.json").write_text(reduced(of_cloud, json.loads(Path(source).read_text())))
