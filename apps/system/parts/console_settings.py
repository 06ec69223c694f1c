"""Settings that are right by themselves, but do not fit together or not to how the console is reached."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from apps.system.parts.part import Answer, Detail, State, worst


def settings_fit() -> Answer:
    """Names, origins, addresses, mail and second factors."""
    details = (*_names(), *_people())
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


def _covers(pattern: str, host: str) -> bool:
    return pattern in ("*", host) or (pattern.startswith(".") and (host.endswith(pattern) or host == pattern[1:]))
