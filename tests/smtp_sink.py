"""A mail server that keeps what it is sent: real SMTP on loopback, with the standard library alone."""

from __future__ import annotations

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

from tests.serving import answering


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail as it came: from and to of the envelope, and the message."""

    sender: str
    recipients: tuple[str, ...]
    raw: bytes

    @property
    def message(self) -> EmailMessage:
        """The message, read."""
        found = message_from_bytes(self.raw, policy=policy.default)
        assert isinstance(found, EmailMessage)
        return found

    @property
    def text(self) -> str:
        """Its body."""
        return str(self.message.get_content())


@dataclass(slots=True)
class Sink:
    """`refuses` is the answer to DATA instead of taking it; empty takes everything."""

    port: int = 0
    refuses: str = ""
    mails: list[Mail] = field(default_factory=list)

    @property
    def subjects(self) -> list[str]:
        """The subjects of all mails, as they came."""
        return [str(mail.message["Subject"]) for mail in self.mails]


class Session(socketserver.StreamRequestHandler):
    """One connection."""

    timeout = 10
    sink: Sink

    def handle(self) -> None:
        """Answer command by command."""
        self._say("220 sink")
        sender, recipients = "", list[str]()
        for line in self.rfile:
            verb, _, rest = line.decode("latin-1").strip().partition(" ")
            match verb.upper():
                case "MAIL":
                    sender, recipients = rest.partition(":")[2], []
                case "RCPT":
                    recipients.append(rest.partition(":")[2].strip("<> "))
                case "DATA":
                    self._data(sender.split(" ")[0].strip("<>"), tuple(recipients))
                    continue
                case "QUIT":
                    self._say("221 bye")
                    return
            self._say("250 sink" if verb.upper() in ("EHLO", "HELO", "MAIL", "RCPT", "RSET", "NOOP") else "502 no")

    def _data(self, sender: str, recipients: tuple[str, ...]) -> None:
        self._say("354 go on")
        lines = []
        for line in self.rfile:
            if line == b".\r\n":
                break
            lines.append(line[1:] if line.startswith(b"..") else line)
        if not self.sink.refuses:
            self.sink.mails.append(Mail(sender, recipients, b"".join(lines)))
        self._say(self.sink.refuses or "250 taken")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def smtp_sink() -> Iterator[Sink]:
    """A sink that runs."""
    sink = Sink()

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    session = type("Session", (Session,), {"sink": sink})
    with Server(("127.0.0.1", 0), session) as server:
        sink.port = server.server_address[1]
        with answering(server):
            yield sink
