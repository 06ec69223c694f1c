"""Messages by mail, over the installation's SMTP server; those of one thread stand together in the mailbox."""

from __future__ import annotations

import time
from email.utils import parseaddr
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import BadHeaderError, EmailMessage

from apps.alerts.sending.contract import Parcel
from apps.alerts.telling.messages import one_line
from apps.webhooks.delivering import Outcome

TAKEN = 250


def send(parcel: Parcel) -> Outcome:
    """What came of it; the server's own words stay in its log, people read what kind of failure it was."""
    began = time.monotonic()
    try:
        _mail(parcel).send()
    except (OSError, SMTPException, BadHeaderError, UnicodeError) as error:
        return Outcome(None, _since(began), error=_sentence(error))
    return Outcome(TAKEN, _since(began))


def _mail(parcel: Parcel) -> EmailMessage:
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    thread = f"<{(parcel.message.threads or (parcel.key,))[0]}@{domain}>"
    headers = {
        "Message-ID": f"<{parcel.key}@{domain}>",
        "Auto-Submitted": "auto-generated",
        "References": thread,
        "In-Reply-To": thread,
    }
    text = parcel.message.text(parcel.link)
    return EmailMessage(one_line(parcel.message.heading, 200), text, None, list(parcel.to), headers=headers)


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _sentence(error: Exception) -> str:
    if isinstance(error, SMTPException):
        return f"The mail server did not take it ({type(error).__name__})."
    if isinstance(error, TimeoutError):
        return "The mail server did not answer in time."
    return "The mail server could not be reached." if isinstance(error, OSError) else "The mail could not be written."
