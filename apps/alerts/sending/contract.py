"""What a type of channel is given, and what its channel needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from apps.alerts.telling.messages import Message


@dataclass(frozen=True, slots=True)
class Parcel:
    """One message on its way: what it says, where it goes, and a key that is the same at every attempt."""

    message: Message
    key: str
    made_at: datetime
    link: str
    to: tuple[str, ...]
    url: str
    secret: str
