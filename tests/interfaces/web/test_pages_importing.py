"""The page that imports a haproxy.cfg: files or text in, report and plan out; no secret comes back."""

from __future__ import annotations

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.definitions.models import Pool, Route, StoredPlan
from apps.fleet.models import Fleet
from apps.importing.ordering import MOST_BYTES
from tests.forked_readers import forked_readers
from tests.interfaces.api.test_api_importing import FILE, FLEET, HIDDEN, SECRETS
from tests.interfaces.people import client_of

__all__ = ["forked_readers"]
IMPORT = reverse("web:import")
TO = {"/fleets": [FLEET]}

pytestmark = [
    pytest.mark.slow(reason="each import reads, compares and renders everything"),
    pytest.mark.usefixtures("forked_readers"),
]


@pytest.fixture
def operators(tutorial_env: Actor) -> Client:
    return client_of(tutorial_env)


def test_pasted_text_becomes_a_report_and_a_plan_that_is_applied_as_it_was_shown(operators: Client) -> None:
    answer = operators.post(IMPORT, TO | {"pasted": FILE.replace("\n", "\r\n")})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert page.index("Not possible</span>") < page.index("Mapped</span>"), "warnings come first"
    assert "http-request lua.guard" in page
    assert "moved-api" in page
    assert not Pool.objects.filter(name="moved-api").exists()
    done = operators.post(reverse("web:import-apply", args=[StoredPlan.objects.get().pk]), follow=True)
    assert "The import is applied." in done.content.decode()
    assert Route.objects.filter(load_balancer__name="moved-in").exists()
    again = operators.post(IMPORT, TO | {"pasted": FILE}).content.decode()
    assert "Nothing to apply." in again
    changed = operators.post(IMPORT, TO | {"pasted": FILE.replace("10.50.0.2", "10.50.0.3")}).content.decode()
    assert "0 to create, 1 to update" in changed
    assert "10.50.0.3" in changed


def test_files_are_uploaded_with_the_configuration_among_them(operators: Client) -> None:
    text = FILE.replace("{ path_beg /api }", "{ path_beg -f paths.lst }")
    files = [ContentFile(text.encode(), "haproxy.cfg"), ContentFile(b"/api\n/v2\n", "paths.lst")]
    page = operators.post(IMPORT, TO | {"/files": files}).content.decode()
    assert "Apply this plan" in page
    assert "/v2" in page


def test_a_plan_is_not_there_for_another_account_and_is_applied_once(operators: Client, acme: Actor) -> None:
    operators.post(IMPORT, TO | {"pasted": FILE})
    url = reverse("web:import-apply", args=[StoredPlan.objects.get().pk])
    assert client_of(acme).post(url).status_code == 404
    assert not Pool.objects.filter(name="moved-api").exists()
    operators.post(url)
    assert "This plan was applied by" in operators.post(url, follow=True).content.decode()


def test_open_questions_come_before_a_plan_and_are_answered_in_fields(operators: Client) -> None:
    Fleet.objects.filter(name=FLEET).update(local_development=False)
    sent = TO | {"pasted": FILE.replace("10.50.0.1:8080", "127.0.0.1:8080")}
    page = operators.post(IMPORT, sent).content.decode()
    assert "Answer these first" in page
    assert "servers: 127.0.0.1:8080=HOST:PORT" in page
    assert "Apply this plan" not in page
    answered = operators.post(IMPORT, sent | {"/servers": "127.0.0.1:8080=10.50.0.9:8080"}).content.decode()
    assert "Apply this plan" in answered


def test_no_secret_of_the_files_or_answers_is_written_into_the_page(operators: Client) -> None:
    sent = TO | {"pasted": SECRETS, "/passwords": "bob=battery-staple", "/certificates": "/etc/ssl/site.pem=shop"}
    answer = operators.post(IMPORT, sent)
    report = answer.content.decode().partition('id="report"')[2]
    assert "userlist people" in report
    assert [secret for secret in HIDDEN if secret in report] == []
    assert [secret for secret in ("correct-horse", "battery-staple") if secret in answer.content.decode()] == []
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({}, "/files"),
        ({"/files": ContentFile(b"\xff\xfe\x00", "haproxy.cfg")}, "/files"),
        ({"/files": ContentFile(b"x" * (MOST_BYTES + 1), "haproxy.cfg")}, "/files"),
        ({"/files": [ContentFile(b"x", "a.cfg"), ContentFile(b"x", "b.cfg")]}, "/file"),
        ({"pasted": "x" * 20_000}, "pasted"),
        ({"pasted": "once upon a time"}, "/format"),
        ({"pasted": FILE, "/prefix": "Shop/"}, "/prefix"),
        ({"pasted": FILE, "/account": "nobody"}, "/account"),
        ({"pasted": FILE, "/servers": "nothing"}, "/servers"),
        ({"pasted": FILE, "/passwords": "battery-staple"}, "/passwords"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(operators: Client, sent: dict[str, object], field: str) -> None:
    answer = operators.post(IMPORT, TO | sent)
    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {field}
    assert "battery-staple" not in answer.content.decode()


def test_pasted_text_stays_where_another_field_is_refused_and_goes_with_the_report(operators: Client) -> None:
    refused = operators.post(IMPORT, TO | {"pasted": FILE, "/prefix": "Shop/"})
    assert refused.context["form"]["pasted"].value() == FILE
    done = operators.post(IMPORT, TO | {"pasted": FILE})
    assert done.context["form"]["pasted"].value() == ""


def test_without_files_or_text_the_page_asks_for_either_in_its_own_words(operators: Client) -> None:
    [said] = operators.post(IMPORT, TO).context["form"].errors["/files"]
    assert said == "Choose the files, or paste the configuration."


def test_the_page_is_for_operators_who_may_write(tutorial_env: Actor, acme: Actor) -> None:
    reader = client_of(tutorial_env, Membership.Role.VIEWER)
    for client, status in ((client_of(acme), 404), (reader, 403)):
        assert client.get(IMPORT).status_code == status
        assert client.post(IMPORT, TO | {"pasted": FILE}).status_code == status
    assert not StoredPlan.objects.exists()


def test_an_empty_list_of_load_balancers_leads_to_it(operator: Actor) -> None:
    page = client_of(operator).get(reverse("web:load-balancers")).content.decode()
    assert page.count(f'href="{IMPORT}"') == 2
