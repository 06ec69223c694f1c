"""The choice: which reader asks a cloud; each is imported when the first is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from apps.drivers.clouds.contract import CloudAccess, CloudError, CloudReader
from apps.drivers.clouds.memory import SCHEME, MemoryReader
from apps.drivers.extras import missing

READERS: Mapping[str, str] = {
    "aws": "apps.drivers.clouds.aws:AwsReader",
    "google": "apps.drivers.clouds.google:GoogleReader",
}


def open_reader(access: CloudAccess) -> CloudReader:
    """The reader for an access. Raises CloudError when nobody speaks its cloud, or its credentials lead nowhere.

    So it does when the cloud's libraries are not installed.
    """
    if access.endpoint_url.startswith(SCHEME):
        return MemoryReader(access)
    if access.cloud not in READERS:
        raise CloudError(f"No reader speaks {access.cloud}.")
    if what := missing(access.cloud):
        raise CloudError(what)
    module, _, name = READERS[access.cloud].partition(":")
    reader: Callable[[CloudAccess], CloudReader] = getattr(import_module(module), name)
    return reader(access)
