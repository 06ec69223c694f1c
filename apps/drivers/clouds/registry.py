"""The choice: which reader asks a cloud; each is imported when the first is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from apps.drivers.clouds.contract import CloudError, CloudPlace, CloudReader
from apps.drivers.clouds.memory import SCHEME, MemoryReader
from apps.drivers.extras import missing

READERS: Mapping[str, str] = {
    "aws": "apps.drivers.clouds.aws:AwsReader",
    "google": "apps.drivers.clouds.google:GoogleReader",
}


def open_reader(place: CloudPlace) -> CloudReader:
    """The reader of a place. Raises CloudError when nobody speaks its cloud, or its credentials lead nowhere.

    So it does when the cloud's libraries are not installed.
    """
    if place.endpoint_url.startswith(SCHEME):
        return MemoryReader(place)
    if place.cloud not in READERS:
        raise CloudError(f"No reader speaks {place.cloud}.")
    if what := missing(place.cloud):
        raise CloudError(what)
    module, _, name = READERS[place.cloud].partition(":")
    reader: Callable[[CloudPlace], CloudReader] = getattr(import_module(module), name)
    return reader(place)
