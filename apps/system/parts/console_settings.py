"""Settings that are right by themselves, but do not fit together or not to how the console is reached."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Max

from apps.core.clock import now
from apps.definitions.models import Country
from apps.system.parts.part import Answer, Detail, State, worst

# Networks move between countries; a database is made anew each week or month.
OLD = timedelta(days=90)


def settings_fit() -> Answer:
    """Names, origins, addresses, mail, second factors and the database of countries."""
    details = (*_names(), *_people(), *_countries())
    state = worst(each.state for each in details) if details else State.OK
    said = "They fit together." if not details else "; ".join(f"{each.name} {each.text}" for each in details) + "."
    remedy = "" if state == State.OK else "Change them in the environment file, and restart every process."
    return Answer(state, said, remedy, details)


def _names() -> list[Detail]:
    found = []
    url = urlsplit(settings.CONSOLE_URL)
    hosts = settings.ALLOWED_HOSTS
    if not any(_covers(host, url.hostname or "") for host in hosts):
        found.append(
            Detail("SPILLWAY_ALLOWED_HOSTS", State.FAILED, f"lacks {url.hostname}, the name of SPILLWAY_CONSOLE_URL")
        )
    if "*" in hosts and not settings.DEVELOPMENT:
        found.append(Detail("SPILLWAY_ALLOWED_HOSTS", State.WARNING, "lets every name pass"))
    if settings.DEVELOPMENT:
        return found
    if not settings.CSRF_TRUSTED_ORIGINS:
        text = "is empty: behind a proxy that ends TLS every form is refused"
        found.append(Detail("SPILLWAY_ORIGINS", State.WARNING, text))
    if url.scheme != "https":
        found.append(Detail("SPILLWAY_CONSOLE_URL", State.WARNING, "is not https: cookies are sent over TLS only"))
    if settings.DEBUG:
        found.append(Detail("SPILLWAY_DEBUG", State.FAILED, "shows the insides of errors to everybody"))
    return found


def _people() -> list[Detail]:
    if settings.DEVELOPMENT:
        return [Detail("SPILLWAY_ENV", State.WARNING, "is development")]
    found = []
    if not settings.REQUIRE_SECOND_FACTOR:
        found.append(Detail("SPILLWAY_REQUIRE_SECOND_FACTOR", State.WARNING, "asks nobody for a second factor"))
    if settings.SECRET_KEY in settings.TOKEN_PEPPERS.values():
        text = "is not set: API tokens end with the present SPILLWAY_SECRET_KEY"
        found.append(Detail("SPILLWAY_TOKEN_PEPPERS", State.WARNING, text))
    return found


def _countries() -> list[Detail]:
    if not settings.COUNTRIES:
        return []
    newest = Country.objects.aggregate(at=Max("built_at"))["at"]
    if newest is None:
        text = "was not read: no worker has that file, or it names no country (the workers' logs say which)"
    elif now() - newest > OLD:
        text = f"is of {newest:%Y-%m-%d}: give workers a newer file"
    else:
        return []
    return [Detail("SPILLWAY_COUNTRIES", State.WARNING, text)]


def _covers(pattern: str, host: str) -> bool:
    return pattern in ("*", host) or (pattern.startswith(".") and (host.endswith(pattern) or host == pattern[1:]))
