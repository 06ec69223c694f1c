"""Forms of what a provider has: the field that chooses it, and of the others those that it knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.definitions.services import save_object
from tests.interfaces.people import client_of

RULES = Path("frontend/static/css/forms.css").read_text()
FORMS = {
    "cloud-account-new": ("/spec/cloud", {"/spec/project": "google"}),
    "zone-new": (
        "/spec/driver",
        {"/spec/key_name": "rfc2136", "/spec/stack": "route53", "/spec/server": "rfc2136 powerdns memory"},
    ),
    "static-ip-new": ("/spec/kind", {"/spec/stack": "elastic accelerator google"}),
    "alert-channel-new": ("/spec/type", {"/spec/to": "email", "/spec/url": "webhook pagerduty opsgenie alertmanager"}),
}


@pytest.mark.parametrize("page", FORMS)
def test_a_field_says_for_which_providers_it_is_and_each_choice_has_its_rule(page: str, tutorial_env: Actor) -> None:
    chooser, only = FORMS[page]
    answer = client_of(tutorial_env).get(reverse(f"web:{page}"))
    form, text = answer.context["form"], answer.content.decode()
    assert {name: form.fields[name].only for name in only} == only
    for words in only.values():
        assert f'data-only="{words}"' in text
    for word, _ in form.fields[chooser].widget.choices:
        assert f'[name="{chooser}"] > [value="{word}"]:checked) [data-only]:not([data-only~="{word}"]' in RULES


def test_a_stack_has_the_fields_of_the_cloud_of_its_account(tutorial_env: Actor) -> None:
    for cloud in ("aws", "google"):
        spec = {"cloud": cloud} | ({"project": "my-project"} if cloud == "google" else {})
        save_object(actor=tutorial_env, kind="CloudAccount", name=f"at-{cloud}", spec=spec)
    text = client_of(tutorial_env).get(reverse("web:stack-new")).content.decode()
    for cloud, words in {"aws": "AWS", "google": "Google"}.items():
        assert re.search(rf'<option value="at-{cloud}" data-cloud="{cloud}">\s*at-{cloud} \({words}\)', text)
        assert f'[data-cloud="{cloud}"]:checked) [data-only]:not([data-only~="{cloud}"]' in RULES
    assert re.search(r'data-only="aws">\s*<label for="id_/spec/network/subnets"', text)
