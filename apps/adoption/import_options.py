"""The order: which load balancer of a cloud shall be which of ours, read strictly; and what of it had no use."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apps.adoption.contract import Adoption, ReportLine, Verdict, Wish
from apps.compiler import grammar
from apps.compiler.address_spelling import spelled
from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError, Invalid
from apps.definitions.reading.fields import Reader
from apps.definitions.shapes.base.words import MAX_LIST
from apps.definitions.shapes.clouds.stack import region_of_cloud

# An ARN, `classic/NAME`, `urlMaps/NAME`; paths of IAM's certificates have more signs than those of others.
_CLOUD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+=,.@:/-]{0,2047}")
_CLOUD_LOCATION = re.compile(r"[a-z][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class Order:
    """Where to look, what to take, and what it shall be here."""

    region: str
    found_id: str
    wish: Wish


def read_order(data: object, *, account: str) -> Order:
    """`{region, id, name, account?, regions?, certificates?, addresses?, stack?}`; `account` where it says none.

    `regions`, `certificates` and `addresses` map the cloud's words to names of ours. Raises Invalid with every error.
    """
    field_errors: list[FieldError] = []
    reader = Reader(data, "", field_errors)
    if reader.data.get("name") is None:
        reader.add_error("name", "missing", "Fill in the name of the load balancer in Spillway.")
    order = Order(
        region=reader.required("region", region_of_cloud),
        found_id=reader.required("id", cloud_id),
        wish=Wish(
            name=reader.optional("name", grammar.name, ""),
            account=reader.optional("account", grammar.name, account),
            regions=_names_for(reader.child("regions"), _cloud_location),
            certificates=_names_for(reader.child("certificates"), cloud_id),
            addresses=_names_for(reader.child("addresses"), _address),
            stack=reader.optional("stack", grammar.name, ""),
        ),
    )
    reader.close()
    if field_errors:
        raise Invalid(field_errors)
    return order


def cloud_id(value: object) -> str:
    """How a cloud names a thing: an ARN, or a name with what it is in front."""
    if isinstance(value, str) and _CLOUD_ID.fullmatch(value):
        return value
    raise GrammarError("cloud_id", "Use the ID of the cloud: an ARN on AWS, a name on Google.")


def _cloud_location(value: object) -> str:
    if isinstance(value, str) and _CLOUD_LOCATION.fullmatch(value):
        return value
    raise GrammarError(
        "cloud_location", "Use the cloud's name of a region or zone, such as eu-central-1 or europe-west3-a."
    )


def _address(value: object) -> str:
    try:
        if isinstance(value, str) and value.isascii() and spelled(ipaddress.ip_address(value)) == value:
            return value
    except ValueError:
        pass
    raise GrammarError("address", "Use the address of the listener in the cloud, such as 203.0.113.7.")


def _names_for(reader: Reader | None, theirs: Callable[[object], str]) -> Mapping[str, str]:
    """The cloud's words, each in its grammar, with the names of ours that stand for them."""
    if reader is None:
        return {}
    if len(reader.data) > MAX_LIST:
        reader.add_error("", "too_many", f"Use at most {MAX_LIST} entries here.")
        return {}
    for word in reader.data:
        try:
            theirs(word)
        except GrammarError as error:
            reader.add_error(word, error.code, error.message)
    return {word: reader.required(word, grammar.name) for word in reader.data}


def unused(adoption: Adoption, wish: Wish) -> Iterator[ReportLine]:
    """A line for every name that was said and stands nowhere in the documents: nothing is ignored silently."""
    specs = [document["spec"] for document in adoption.documents]
    listeners = [listener for spec in specs for listener in spec.get("listeners", ())]
    regions = {backend["region"] for spec in specs for backend in spec.get("backends", ())}
    certificates = {name.rpartition("/")[2] for each in listeners for name in each.get("certificates", ())}
    addresses = {each.get("static_ip") for each in listeners}
    yield from _without(wish.regions, regions, "region", "The import found no server there, so {} has none.")
    yield from _without(wish.certificates, certificates, "certificate", "No imported listener uses {}.")
    yield from _without(wish.addresses, addresses, "address", "No imported listener uses {}. Bind it by hand.")


def _without(said: Mapping[str, str], used: set[Any], what: str, reason: str) -> Iterator[ReportLine]:
    for theirs, ours in said.items():
        if ours not in used:
            yield ReportLine(f"{what} {theirs}", Verdict.LEFT_OUT, reason.format(ours))
