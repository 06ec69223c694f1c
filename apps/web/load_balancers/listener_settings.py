"""What listeners are told beyond their port, field by field in the words of their shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.definitions.models import Listener
from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.traffic.load_balancer import ListenerSpec
from apps.web.load_balancers import connection_lines

# What `tls` says of https alone.
OF_REQUESTS = ("http2", "http3", "same_certificate")


def settings_of(listener: Listener) -> tuple[tuple[str, str], ...]:
    """Label and value of everything that is set; nothing for a listener that is as it always was."""
    document = write(ListenerSpec, listener, listener.account_id)
    optional = [field for field in fields_of(ListenerSpec) if field.about.absent_when_empty]
    if listener.protocol == "tcp" and "tls" in document:
        document["tls"] = {name: value for name, value in document["tls"].items() if name not in OF_REQUESTS}
    return tuple(pair for field in optional if field.name in document for pair in _said(field, document[field.name]))


def _said(field: Field, value: Any) -> Iterator[tuple[str, str]]:
    if field.name in ("sni_routes", "protocol_routes"):
        for each in value:
            passed_on = ", TLS passed on" if each.get("passthrough") else ""
            yield f"{field.about.label}: {connection_lines.asked(each)}", each["pool"] + passed_on
    elif field.child:
        for document in value if field.many else [value]:
            for each in fields_of(field.child):
                if document.get(each.name) not in (None, [], ""):
                    yield f"{field.about.label}: {each.about.label}", _text(each, document[each.name])
    else:
        yield field.about.label, str(value)


def _text(field: Field, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and value.startswith("-----BEGIN"):
        return f"{value.count('-----BEGIN')} in PEM"
    labels = (field.grammar.labels if field.grammar else None) or {}
    return labels.get(str(value), f"{value:,}" if isinstance(value, int) else str(value))
