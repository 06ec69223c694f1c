"""Forms of new objects: an operator says first whose it is, for what may be chosen below depends on that."""

from __future__ import annotations

import re

import pytest
from django.urls import NoReverseMatch, reverse

from apps.accounts.actors import Actor
from apps.web.urls import urlpatterns
from tests.interfaces.people import client_of

OWNERS = ("account", "/account", "/spec/account", "/spec/owner")
FIELD = re.compile(r'<(?:input|select|textarea)\b(?![^>]*type="hidden")[^>]*?\bname="([^"]+)"')


def form_pages() -> list[str]:
    """The pages on which something new is typed, of all that need no other object."""
    found = []
    for pattern in urlpatterns:
        if pattern.name and pattern.name.endswith("-new"):
            try:
                found.append(reverse(f"web:{pattern.name}"))
            except NoReverseMatch:
                continue
    return found


@pytest.mark.slow(reason="It opens each of the forms.")
@pytest.mark.django_db
def test_whose_a_new_object_is_comes_before_everything_else(operator: Actor) -> None:
    client, asking = client_of(operator), set()
    for url in form_pages():
        page = client.get(url).content.decode()
        form = page[page.index('<form class="form') :]
        names = FIELD.findall(form)
        if not set(names).isdisjoint(OWNERS):
            asking.add(url)
            assert names[0] in OWNERS, f"{url} asks for {names[0]} first"
    assert {"/routes/new", "/pools/new", "/schedules/new", "/hostnames/new", "/new-grant", "/static-ips/new"} <= asking
