"""The pages of policies: what is typed becomes rules, who uses them is shown, and whose each setting of a route is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions import selectors
from apps.definitions.key_sets.reading import read_key_set
from apps.definitions.models import KeySet, Policy
from apps.definitions.reading.describing import describe
from apps.definitions.services import save_object
from tests.apps.clouds_env import give_real_addresses, make_clouds, spec_of
from tests.breadth import first_of
from tests.hostile.policy_examples import JWT_KEY
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_routes import typed
from tests.issuer import jwk

NEW = "web:policy-new"


@pytest.fixture
def stored(tutorial_env: Actor, acme: Actor) -> Policy:
    spec = {"rules": {"security_headers": {"no_sniff": True, "frames": "deny"}}}
    row: Policy = save_object(actor=acme, kind="Policy", name="web", spec=spec)
    return row


def send(actor: Actor, name: str, **fields: str) -> Any:
    """The form of a new policy, sent; `rules__cors__origins` is the field of that pointer."""
    sent = {f"/spec/{key.replace('__', '/')}": value for key, value in fields.items()}
    return client_of(actor).post(reverse(NEW), {"/name": name, **sent})


def test_what_is_typed_becomes_rules_and_the_rest_says_nothing(tutorial_env: Actor, acme: Actor) -> None:
    send(
        acme,
        "web",
        rules__request_headers__set="X-A=1\r\nX-B={host}",
        rules__cors__origins="https://a.example\r\nhttps://b.example",
        rules__cors__credentials="false",
        rules__security_headers__hsts_seconds="60",
    )
    assert describe(Policy.objects.get())["rules"] == {
        "request_headers": {"set": {"X-A": "1", "X-B": "{host}"}},
        "cors": {"origins": ["https://a.example", "https://b.example"], "credentials": False},
        "security_headers": {"hsts_seconds": 60},
    }


def test_headers_by_what_servers_say_are_typed_like_others(tutorial_env: Actor, acme: Actor) -> None:
    send(
        acme,
        "web",
        rules__response_headers__set_if_absent="X-Frame-Options=DENY",
        rules__typed_headers__types="text/html\r\napplication/xhtml+xml",
        rules__typed_headers__remove="X-Powered-By",
    )
    assert describe(Policy.objects.get())["rules"] == {
        "response_headers": {"set_if_absent": {"X-Frame-Options": "DENY"}},
        "typed_headers": {"types": ["application/xhtml+xml", "text/html"], "remove": ["X-Powered-By"]},
    }


def test_headers_without_a_media_type_are_refused_beside_the_field(tutorial_env: Actor, acme: Actor) -> None:
    page = send(acme, "web", rules__typed_headers__remove="X-Powered-By").content.decode()
    assert "Name at least one media type; response_headers are for all of them." in page
    assert not Policy.objects.exists()


def test_the_form_shows_what_is_stored_and_saves_it_unchanged(stored: Policy, acme: Actor) -> None:
    url, client = reverse("web:policy-edit", args=[stored.pk]), client_of(acme)
    form = client.get(url).context["form"]
    sent = {name: form[name].value() or "" for name in form.fields}
    client.post(url, {**sent, "version": "1"})
    stored.refresh_from_db()
    assert stored.version == 1


@pytest.mark.parametrize("said", [True, False])
def test_a_box_is_ticked_by_what_is_stored(tutorial_env: Actor, acme: Actor, said: bool) -> None:
    spec = {"rules": {"rewrite": {"drop_query": False}}, "default_for": {"account": said}}
    row: Policy = save_object(actor=acme, kind="Policy", name="web", spec=spec)
    form = client_of(acme).get(reverse("web:policy-edit", args=[row.pk])).context["form"]
    assert ("checked" in str(form["/spec/default_for/account"])) is said
    assert form["/spec/rules/rewrite/drop_query"].value() == "false"


@pytest.mark.parametrize(
    ("field", "typed", "words"),
    [
        ("rules__cors__origins", "app.example.com", "Write an origin such as"),
        ("rules__request_headers__set", "Host=x", "the balancer sets Host itself"),
        ("default_for__hostnames", "no host", "Write the full name"),
        ("rules__maintenance__status", "99", "200 to 599"),
    ],
)
def test_a_refusal_stands_beside_its_field(
    tutorial_env: Actor, acme: Actor, field: str, typed: str, words: str
) -> None:
    answer = send(acme, "web", **{field: typed})
    assert answer.status_code == 422
    errors = answer.context["form"].errors
    assert words in " ".join(errors[f"/spec/{field.replace('__', '/')}"])
    assert not Policy.objects.exists()


def test_the_page_of_a_policy_names_the_routes_that_use_it(stored: Policy, acme: Actor) -> None:
    spec = describe(selectors.routes(acme).get(name="shop")) | {"policies": ["web"]}
    save_object(actor=acme, kind="Route", name="shop", spec=spec)
    page = client_of(acme).get(reverse("web:policy", args=[stored.pk])).content.decode()
    assert "1 route" in page
    assert "shop" in page
    assert "No sniffing" in page


def test_the_page_of_a_route_says_whose_each_setting_is(stored: Policy, acme: Actor) -> None:
    route = selectors.routes(acme).get(name="shop")
    own = {"rules": {"security_headers": {"frames": "sameorigin"}}, "policies": ["web"]}
    save_object(actor=acme, kind="Route", name="shop", spec=describe(route) | own)
    settings = client_of(acme).get(reverse("web:route", args=[route.pk])).context["settings"]
    assert {(each.name, each.source) for each in settings} == {("No sniffing", "web"), ("Frames", "this route")}


def test_a_policy_in_use_is_not_deleted(stored: Policy, acme: Actor) -> None:
    spec = describe(selectors.routes(acme).get(name="shop")) | {"policies": ["web"]}
    save_object(actor=acme, kind="Route", name="shop", spec=spec)
    client_of(acme).post(reverse("web:policy-delete", args=[stored.pk]), {"confirm": "web"})
    assert Policy.objects.exists()


def test_the_form_of_a_route_names_its_policies(stored: Policy, acme: Actor) -> None:
    client, url = client_of(acme), reverse("web:route-new")
    client.post(url, typed(name="more", path="/more", policies="web\r\n"))
    assert [policy.name for policy in selectors.routes(acme).get(name="more").policies] == ["web"]
    answer = client.post(url, typed(name="again", path="/again", policies="other"))
    assert "There is no policy other." in answer.context["form"].errors["policies"]


def test_statuses_are_numbers_one_a_line(tutorial_env: Actor, acme: Actor) -> None:
    send(acme, "web", rules__error_pages__statuses="503\r\n404", rules__error_pages__body="<h1>{status}</h1>")
    assert describe(Policy.objects.get())["rules"]["error_pages"]["statuses"] == [404, 503]
    answer = send(acme, "more", rules__error_pages__statuses="some", rules__error_pages__body="x")
    assert answer.status_code == 422
    shown = client_of(acme).get(reverse("web:policy", args=[Policy.objects.get().pk])).content.decode()
    assert "404, 503" in shown


def test_what_was_typed_as_a_secret_is_not_shown_again(tutorial_env: Actor, acme: Actor) -> None:
    answer = send(acme, "web", rules__basic_auth__users="anna=a long password", rules__rewrite__path="x")
    assert answer.status_code == 422
    assert "a long password" not in answer.content.decode()
    assert "anna=" in answer.content.decode()


def test_the_form_keeps_passwords_and_lists_of_objects(tutorial_env: Actor, acme: Actor) -> None:
    key = (
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9\n"
        "q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==\n-----END PUBLIC KEY-----\n"
    )
    rules = {
        "api_keys": {"keys": {"shop": "k" * 32}},
        "jwt": {"issuer": "https://a.example", "audience": "api", "keys": [{"algorithm": "ES256", "pem": key}]},
    }
    row: Policy = save_object(actor=acme, kind="Policy", name="who", spec={"rules": rules})
    url, client = reverse("web:policy-edit", args=[row.pk]), client_of(acme)
    form = client.get(url).context["form"]
    sent = {name: form[name].value() or "" for name in form.fields} | {"/spec/rules/rewrite/path": "/x"}
    client.post(url, {**sent, "version": "1"})
    after = Policy.objects.get()
    assert after.version == 2
    assert after.rules["api_keys"] == row.rules["api_keys"]
    assert after.rules["jwt"] == row.rules["jwt"]


RSA = read_key_set(json.dumps({"keys": [jwk("one")]}).encode()).keys[0].pem
TOKENS = {"rules__jwt__issuer": "https://a.example", "rules__jwt__audience": "api"}


def keys_typed(actor: Actor, text: str) -> Any:
    """A policy whose keys of tokens are this text."""
    return send(actor, "web", **TOKENS, rules__jwt__keys=text)


def test_keys_of_tokens_are_typed_below_their_algorithm(tutorial_env: Actor, acme: Actor) -> None:
    keys_typed(acme, f"RS256 2026-1\r\n{RSA}\r\n\r\n  ES256  \r\n{JWT_KEY}".replace("\n", "\r\n"))
    wanted = [{"algorithm": "ES256", "pem": JWT_KEY}, {"algorithm": "RS256", "pem": RSA, "kid": "2026-1"}]
    assert sorted(describe(Policy.objects.get())["rules"]["jwt"]["keys"], key=lambda key: key["algorithm"]) == wanted
    row = Policy.objects.get()
    client, url = client_of(acme), reverse("web:policy-edit", args=[row.pk])
    form = client.get(url).context["form"]
    client.post(url, {name: form[name].value() or "" for name in form.fields} | {"version": "1"})
    assert Policy.objects.get().version == 1


@pytest.mark.parametrize(
    ("typed", "words"),
    first_of(
        5,
        [
            ("RS256", "Entry 1: Add the public key"),
            (f"ES256\n{JWT_KEY}HS256\n{RSA}", "Entry 2: Use one of RS256"),
            (f"ES256\n{JWT_KEY}ES256 two\n{JWT_KEY}", "Entry 2: "),
            ("ES256\n-----BEGIN PUBLIC KEY-----\nAAAA", "Paste a public key in PEM"),
            (f"ES256\x00\n{JWT_KEY}", "Null characters"),
            (JWT_KEY, "Entry 1: Write the algorithm"),
            (f"RS256\n{JWT_KEY}", "Entry 1: Use a key for RS256."),
            (f"none\n{JWT_KEY}", "Entry 1: Use one of RS256"),
            (f'ES256 a"b\n{JWT_KEY}', "Entry 1: Use 1 to 128 letters"),
            (f"ES256 a b\n{JWT_KEY}", "Entry 1: Use 1 to 128 letters"),
            ("ES256\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "Paste a public key in PEM"),
            ("ES256\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "Paste a public key in PEM"),
            ("ES256\n-----BEGIN PUBLIC KEY-----\né%[src]\n-----END PUBLIC KEY-----\n", "Paste a public key in PEM"),
            (f"RS256 k\u2028ES256\n{JWT_KEY}", "Entry 1: Add the public key"),
            ("".join(f"ES256 k{number}\n{JWT_KEY}" for number in range(9)), "at most 8 keys"),
        ],
    ),
)
def test_keys_that_do_not_fit_are_refused_beside_their_field(
    tutorial_env: Actor, acme: Actor, typed: str, words: str
) -> None:
    answer = keys_typed(acme, typed)
    assert answer.status_code == 422
    assert words in " ".join(answer.context["form"].errors["/spec/rules/jwt/keys"])
    assert not Policy.objects.exists()


@pytest.mark.parametrize(
    "typed", ["http://a.example/", "https://169.254.169.254/", "https://a.example/\x00", "https://a.example/ x", "x"]
)
def test_a_url_of_keys_that_is_not_called_is_refused_beside_its_field(
    tutorial_env: Actor, acme: Actor, typed: str
) -> None:
    answer = send(acme, "web", **TOKENS, rules__jwt__jwks_url=typed)
    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {"/spec/rules/jwt/jwks_url"}


def test_the_page_shows_what_was_fetched_and_what_went_wrong(tutorial_env: Actor, acme: Actor) -> None:
    send(acme, "web", **TOKENS, rules__jwt__jwks_url="https://a.example/jwks")
    client, url = client_of(acme), reverse("web:policy", args=[Policy.objects.get().pk])
    assert "Not fetched yet" in client.get(url).content.decode()
    gone = {"algorithm": "RS256", "pem": RSA, "kid": "<b>old</b>", "gone_at": "2026-01-01T00:00:00Z"}
    keys = [{"algorithm": "ES256", "pem": JWT_KEY, "kid": "new"}, gone]
    KeySet.objects.update(keys=keys, fetched_at=now(), tried_at=now(), ignored="shared secret (1)")
    page = client.get(url + "?partial=key_set").content.decode()
    assert "new" in page
    assert "&lt;b&gt;old&lt;/b&gt;" in page
    assert "shared secret (1)" in page
    assert "BEGIN" not in page
    KeySet.objects.update(error="The response is 500.")
    page = client.get(url).content.decode()
    assert "The response is 500." in page
    assert "stay valid" in page
    KeySet.objects.update(tried_at=now() - timedelta(minutes=1), next_at=now() + timedelta(minutes=4))
    fetch = reverse("web:policy-fetch-key-set", args=[Policy.objects.get().pk])
    assert f'action="{fetch}"' in page
    assert "is being fetched" in client.post(fetch, follow=True).content.decode()
    assert KeySet.objects.get().next_at < now()


def test_what_a_cloud_cannot_do_is_said_on_the_form(stored: Policy, acme: Actor, operator: Actor) -> None:
    make_clouds(operator)
    give_real_addresses(acme)
    spec = {"stacks": ["aws-eu"], "listeners": [{"name": "web", "protocol": "http", "port": 80}]}
    save_object(actor=operator, kind="LoadBalancer", name="cloud", spec=spec)
    spec = spec_of(acme, "shop") | {"assertions": [], "load_balancer": "cloud", "path": "/there"}
    save_object(actor=acme, kind="Route", name="there", spec=spec)
    name, default = "/spec/rules/client_limit/requests", "/spec/default_for/account"
    answer = client_of(acme).post(reverse(NEW), {"/name": "limits", name: "5", default: "true"})
    assert "client_limit would hold for route acme/there." in answer.content.decode()
    assert not Policy.objects.filter(name="limits").exists()
