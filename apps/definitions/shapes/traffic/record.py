"""The shape of a Record: one set of DNS records, all values of one name and type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from apps.compiler.grammar import GrammarError
from apps.compiler.model.stack import RecordType
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import SORTED, About, Check, Data, Distinct, Shape, Wrong
from apps.definitions.shapes.base.words import LISTED, ByName, Pairs, Reference, at_most, text, whole, word
from apps.definitions.shapes.traffic.zone import LABELS
from apps.definitions.values import record_values
from apps.definitions.values.record_values import MAX_NAME, MAX_VALUE, MAX_VALUES, TTLS, plain_value

TYPES = {RecordType(each): each for each in ("A", "AAAA", "CNAME", "TXT", "MX", "SRV", "CAA", "NS")}
LABEL = "The name below the zone, @ for the zone itself."
SOURCES = ("values", "static_ip", "load_balancer")
# What can follow an address, and what can follow a load balancer (a CNAME: to the name that its cloud gave it).
FOLLOW_ADDRESS = ("A", "AAAA")
FOLLOW_BALANCER = (*FOLLOW_ADDRESS, "CNAME")


def _of_type(values: tuple[str, ...], data: Data) -> None:
    kind, field_errors = data.get("type"), []
    if kind is None:
        return
    for index, value in enumerate(values):
        try:
            record_values.value_of(kind)(value)
        except GrammarError as error:
            field_errors.append(FieldError(f"/{index}", error.code, error.message))
    if kind is RecordType.CNAME and len(values) > 1:
        field_errors.append(FieldError("", "too_many", "A CNAME has one value."))
    if kind is RecordType.MX and "0 ." in values and len(values) > 1:
        field_errors.append(
            FieldError("", "null_mx", "`0 .` means that the domain accepts no mail; use it as the only value.")
        )
    if field_errors:
        raise Wrong(*field_errors)


@dataclass(frozen=True, slots=True)
class RecordSpec(Shape):
    """One set of DNS records; exactly one of values, static_ip and load_balancer says what is served."""

    zone: Annotated[Reference, About("The zone; `account/zone` for a shared one.", example="example")]
    label: Annotated[
        str,
        text(record_values.label, "labels, or `@`", MAX_NAME),
        About("Below the domain: www, *.api, or @ for the domain itself.", "Name", None, "www", note=LABEL),
    ]
    type: Annotated[
        RecordType,
        word(RecordType, TYPES),
        About("The record type.", "Type", "", "A"),
    ]
    ttl: Annotated[int, whole(*TTLS), About("The number of seconds that resolvers cache it.", "TTL", "Seconds.")] = 300
    values: Annotated[
        tuple[Annotated[str, text(plain_value, "a value as in a zone file", MAX_VALUE)], ...],
        LISTED,
        at_most(MAX_VALUES, "values in one record"),
        Distinct(),
        Check(_of_type),
        SORTED,
        About("The values as in a zone file.", "Values", None, "192.0.2.1", note="As in a zone file."),
    ] = ()
    static_ip: Annotated[ByName | None, About("The static IP whose address is served.", "Static IP", "")] = None
    load_balancer: Annotated[
        ByName | None,
        About("The load balancer whose addresses are served; an alias on Route 53.", "Load balancer", ""),
    ] = None
    tags: Annotated[Pairs, LABELS, About("Labels of your own.", "Tags")] = ()

    @classmethod
    def together(cls, sent: Data) -> list[FieldError]:
        """One source of what is served, which its type can follow, under a name that can have the type."""
        kind, sources = str(sent.get("type")), [field for field in SOURCES if sent.get(field) not in (None, [])]
        if len(sources) != 1:
            field_errors = [FieldError("", "one_source", f"Use exactly one of {', '.join(SOURCES)}.")]
        elif sources == ["static_ip"] and kind not in FOLLOW_ADDRESS:
            field_errors = [FieldError("/type", "source", "A record that follows a static IP is an A or an AAAA.")]
        elif sources == ["load_balancer"] and kind not in FOLLOW_BALANCER:
            field_errors = [
                FieldError("/type", "source", "A record that follows a load balancer is an A, an AAAA or a CNAME.")
            ]
        else:
            field_errors = []
        try:
            if kind in TYPES:
                record_values.fits_type(str(sent.get("label")), RecordType(kind))
        except GrammarError as error:
            field_errors.append(FieldError("/label", error.code, error.message))
        return field_errors
