"""Messages for chats, by the incoming webhook that a chat gives out; its URL is the secret.

Whatever a server answered may stand in a message: it cannot mention anybody, hide a link, or begin another line.
"""

from __future__ import annotations

import re
from typing import Any

from apps.alerts.sending.contract import Parcel
from apps.alerts.sending.posting import as_json, post
from apps.webhooks.delivering import Outcome

_CONTROLS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKUP = re.compile(r"([\\*_~`|>\[\]()#!])")
DISCORD_MOST = 2000
_CARD = "application/vnd.microsoft.card.adaptive"


def slack(parcel: Parcel) -> Outcome:
    """Slack; Mattermost takes the same."""
    lines = [f"*{_plain(parcel.message.heading)}*", _since(parcel)]
    lines += [f"• {_plain(line)}" for line in _lines(parcel)]
    return _post(parcel, {"text": "\n".join([*lines, f"<{parcel.link}|Open in Spillway>"])})


def discord(parcel: Parcel) -> Outcome:
    """Discord."""
    lines = [f"**{_escaped(parcel.message.heading)}**", _since(parcel), *(f"- {_escaped(x)}" for x in _lines(parcel))]
    room = DISCORD_MOST - len(parcel.link) - 1
    text = "\n".join(lines)[:room]
    return _post(parcel, {"content": f"{text}\n{parcel.link}", "allowed_mentions": {"parse": []}})


def teams(parcel: Parcel) -> Outcome:
    """Microsoft Teams, by a workflow that posts cards."""
    texts = [_since(parcel), *(f"- {_escaped(line)}" for line in _lines(parcel))]
    body: list[dict[str, Any]] = [_block(_escaped(parcel.message.heading), weight="Bolder", size="Medium")]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body + [_block(text) for text in texts],
        "actions": [{"type": "Action.OpenUrl", "title": "Open in Spillway", "url": parcel.link}],
    }
    return _post(parcel, {"type": "message", "attachments": [{"contentType": _CARD, "content": card}]})


def _block(text: str, **more: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True, **more}


def _lines(parcel: Parcel) -> list[str]:
    message = parcel.message
    return [*message.lines, *([f"and {message.more} more"] if message.more else [])]


def _since(parcel: Parcel) -> str:
    return f"Since {parcel.message.began}, account {parcel.message.account}"


def _plain(text: str) -> str:
    return text.translate(_CONTROLS).replace("@", "@\u200b")


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text).replace("@", "@\u200b")


def _post(parcel: Parcel, document: dict[str, Any]) -> Outcome:
    return post(parcel.secret, as_json(document))
