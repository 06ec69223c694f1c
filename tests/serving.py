"""A server of the standard library that answers in a thread of its own for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer

LOOKS_EVERY_S = 0.02  # whether it is to end


@contextmanager
def answering(server: BaseServer) -> Iterator[None]:
    """It answers meanwhile, and is closed by whoever made it.

    Nobody reads from its socket any more when that is closed: whoever did would take what comes to the next one.
    """
    thread = threading.Thread(target=server.serve_forever, args=(LOOKS_EVERY_S,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
