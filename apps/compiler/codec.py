"""For the revision store: snapshots as plain JSON data and bundles as bytes.

Both ways are stable: equal objects give equal bytes, and what comes back is equal to what went in.
"""

from __future__ import annotations

import base64
import json
import types
import zlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from apps.compiler.bundle import Bind, Bundle
from apps.compiler.model.fleet import Snapshot

BUNDLE_FORMAT = 1
# Fields of snapshots that were stored under another name.
_RENAMED = {"own_places": "own_addresses", "test_passes": "bypass_tokens"}
T = TypeVar("T")


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Plain dicts, lists, strings and numbers, named as in the model; defaults are written out."""
    document: dict[str, Any] = _encode(snapshot)
    return document


def snapshot_from_json(document: dict[str, Any]) -> Snapshot:
    """The snapshot again. Raises ValueError, TypeError or KeyError when the document is not one of ours."""
    snapshot = _decoder(Snapshot)({_RENAMED.get(name, name): value for name, value in document.items()})
    if not isinstance(snapshot, Snapshot):
        raise TypeError("This is not a stored snapshot.")
    return snapshot


def from_plain(kind: type[T], data: dict[str, Any]) -> T:
    """One object of the model of plain data that `snapshot_to_json` could have made.

    Raises ValueError, TypeError, KeyError or AttributeError where it is none; what is left out has its default.
    """
    found: T = _decoder(cast("Any", kind))(data)
    return found


def snapshot_to_bytes(snapshot: Snapshot) -> bytes:
    """The same as one compact, sorted JSON text."""
    return json.dumps(snapshot_to_json(snapshot), sort_keys=True, separators=(",", ":")).encode()


def bundle_to_bytes(bundle: Bundle) -> bytes:
    """Compressed JSON of files (base64), digest, binds and line owners."""
    document = {
        "format": BUNDLE_FORMAT,
        "digest": bundle.digest,
        "files": {path: base64.b64encode(content).decode() for path, content in bundle.files.items()},
        "binds": [_encode(bind) for bind in bundle.binds],
        "line_owners": {str(line): owner for line, owner in bundle.line_owners.items()},
        "nodes": dict(bundle.nodes),
        "addresses": dict(bundle.addresses),
    }
    return zlib.compress(json.dumps(document, sort_keys=True, separators=(",", ":")).encode(), level=3)


def bundle_from_bytes(stored: bytes) -> Bundle:
    """The bundle again. Raises ValueError when the bytes are not a stored bundle of this format."""
    try:
        document = json.loads(zlib.decompress(stored))
    except zlib.error as error:
        raise ValueError("This is not a stored bundle.") from error
    if document.get("format") != BUNDLE_FORMAT:
        raise ValueError(f"This bundle has format {document.get('format')}; {BUNDLE_FORMAT} is read here.")
    return Bundle(
        {path: base64.b64decode(content) for path, content in document["files"].items()},
        document["digest"],
        tuple(_decoder(Bind)(bind) for bind in document["binds"]),
        {int(line): owner for line, owner in document["line_owners"].items()},
        document.get("nodes", {}),
        document.get("addresses", {}),
    )


def _encode(thing: Any) -> Any:
    """Dataclasses become dicts, tuples lists, enumerations their values."""
    if isinstance(thing, Enum):
        return thing.value
    if isinstance(thing, tuple):
        return [_encode(each) for each in thing]
    if is_dataclass(thing):
        return {name: _encode(getattr(thing, name)) for name in _names(thing.__class__)}
    return thing


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(sorted(field.name for field in fields(kind)))


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """A function that turns plain data into `kind`: dataclass, enumeration, tuple, optional or plain value."""
    if is_dataclass(kind):
        return _dataclass_decoder(kind)
    if get_origin(kind) in (Union, types.UnionType):
        inner = _decoder(next(each for each in get_args(kind) if each is not type(None)))
        return lambda data: None if data is None else inner(data)
    if get_origin(kind) is tuple:
        return _tuple_decoder(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return lambda data: data


def _tuple_decoder(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    inner = _decoder(kinds[0])  # ours are all of one kind, of any length or a fixed one
    return lambda data: tuple(map(inner, data))


def _dataclass_decoder(kind: Any) -> Callable[[Any], Any]:
    decoders = {name: _decoder(hint) for name, hint in get_type_hints(kind).items()}
    return lambda data: kind(**{name: decoders[name](value) for name, value in data.items()})
