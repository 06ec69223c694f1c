"""Certificates, brought or automatic, and who issues those; a private key comes in here and never goes out again."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.db.models import F, Q
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions import selectors
from apps.definitions.issuing.orders import in_words, is_kept_fresh
from apps.definitions.models import Certificate
from apps.definitions.shapes.base.fields import field_at
from apps.definitions.shapes.traffic.certificate import CertificateSpec
from apps.rollouts.selectors import conditions_of
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import ObjectForm, OperatorPages
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import Typed, deleted_by_name, save, tell, version_sent, version_shown
from apps.web.kit.shape_fields import ask_for_owner, form_field

PER_PAGE = 100
STATES = {"issued": "healthy", "waiting": "behind", "ordering": "busy", "failing": "degraded"}
SOON = 21  # days: authorities that renew by themselves do so earlier
NAMES = "/spec/automatic/hostnames"
MAX_PEM_FILE = 200_000  # bytes; what is longer is cut and then refused by its grammar


class AuthorityForm(ObjectForm):
    """Who issues automatic certificates, and our account there."""

    kind, noun = "CertificateAuthority", "certificate authority"

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:  # noqa: ARG002 - as its pages call
        super().__init__(data, stored=stored, names={})


AUTHORITIES = OperatorPages(
    AuthorityForm, selectors.certificate_authorities, "certificate authorities", ("web:certificates", "Certificates")
)


class CertificateForm(forms.Form):
    """Hostnames, or chain and key as text or as files; the services check all, and the key is not kept in the page."""

    use_required_attribute = False
    template = "pages/certificates/form.html"

    def __init__(self, *args: Any, stored: Certificate | None, is_operator: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if stored is None:
            self.fields["/name"] = forms.CharField(label="Name", help_text="Lowercase letters, digits and hyphens.")
            if is_operator:
                ask_for_owner(self)
        names = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"})
        automatic = stored.automatic if stored else None
        self.fields[NAMES] = forms.CharField(
            label="Hostnames",
            required=False,
            widget=names,
            initial="\n".join(automatic["hostnames"]) if automatic else "",
            help_text="One per line. Spillway orders the certificate and renews it; leave chain and key empty.",
        )
        pasted = forms.Textarea(attrs={"rows": 10, "spellcheck": "false", "class": "mono", "autocomplete": "off"})
        self.fields["/spec/chain"] = form_field(field_at(CertificateSpec, "chain"), pasted)
        self.fields["chain_file"] = forms.FileField(label="… or its file", required=False)
        self.fields["/spec/key"] = key = form_field(field_at(CertificateSpec, "key"), pasted)
        key.help_text += " Leave empty to keep the stored key, if it matches the new chain." if stored else ""
        self.fields["key_file"] = forms.FileField(label="… or its file", required=False)

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields by heading."""
        names = {"Certificate": ("/account", "/name"), "Automatic": (NAMES,), "Chain": ("/spec/chain", "chain_file")}
        names["Key"] = ("/spec/key", "key_file")
        found = {title: [self[name] for name in each if name in self.fields] for title, each in names.items()}
        return [(title, fields) for title, fields in found.items() if fields]

    def pem(self, name: str) -> str | None:
        """The file's text where there is one, else what was pasted; None for nothing."""
        file = self.cleaned_data.get(f"{name}_file")
        if file is not None:
            return bytes(file.read(MAX_PEM_FILE)).decode("utf-8", "replace")
        return str(self.cleaned_data.get(f"/spec/{name}", "")).strip() or None

    def spec(self) -> dict[str, Any]:
        """What was typed, as documents have it."""
        names = str(self.cleaned_data.get(NAMES, "")).split()
        given = {
            "automatic": {"hostnames": names} if names else None,
            "chain": self.pem("chain"),
            "key": self.pem("key"),
        }
        return {field: value for field, value in given.items() if value is not None}

    def forget_key(self) -> None:
        """Take the key out of what is shown again, wherever it was pasted."""
        self.data = {
            name: text for name, text in self.data.items() if name != "/spec/key" and "PRIVATE KEY" not in text
        }


@page
def index(request: PageRequest) -> HttpResponse:
    """Certificates, those without a chain first, then the soonest expiry; `?after=` is the last one's id of a page.

    Of automatic ones it says how they stand; operators see who issues them.
    """
    rows = selectors.certificates(request.actor).order_by(F("not_after").asc(nulls_first=True), "pk")
    after = request.GET.get("after", "")
    last = rows.filter(pk=int(after)).first() if after.isascii() and after.isdecimal() and len(after) < 19 else None
    if last is not None and last.not_after is None:
        rows = rows.filter(Q(not_after__isnull=False) | Q(not_after=None, pk__gt=last.pk))
    elif last is not None:
        rows = rows.filter(Q(not_after__gt=last.not_after) | Q(not_after=last.not_after, pk__gt=last.pk))
    found = list(rows.defer("chain_pem", "encrypted_key").prefetch_related("listeners__load_balancer")[: PER_PAGE + 1])
    conditions = conditions_of("Certificate", [certificate.pk for certificate in found[:PER_PAGE]])
    context = {
        "rows": [
            (certificate, *validity(certificate, now()), conditions[certificate.pk], _order(certificate))
            for certificate in found[:PER_PAGE]
        ],
        "authorities": selectors.certificate_authorities(request.actor) if request.actor.is_operator else [],
        "after": after,
        "next_after": found[PER_PAGE - 1].pk if len(found) > PER_PAGE else None,
    }
    return show(request, "pages/certificates/list.html", context)


def validity(certificate: Certificate, moment: datetime) -> tuple[str, str]:
    """A state for `components/status.html` and the expiry in words."""
    if certificate.not_before is None or certificate.not_after is None:
        return "unknown", "not issued yet"
    if moment < certificate.not_before:
        return "degraded", "not valid yet"
    left = certificate.not_after - moment
    if left.total_seconds() <= 0:
        return "down", "expired today" if left.days == -1 else f"expired {_days(-left.days - 1)} ago"
    if left.days < 1:
        return "down", f"expires in {left.seconds // 3600} h"
    return "degraded" if left.days <= SOON and not is_kept_fresh(
        certificate, moment
    ) else "healthy", f"expires in {_days(left.days)}"


def _order(certificate: Certificate) -> tuple[str, str] | None:
    """How an automatic certificate stands: a state for `components/status.html`, and a sentence."""
    if not certificate.automatic:
        return None
    state, sentence = in_words(certificate, now())
    return STATES[state], sentence


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"


@page
def new(request: PageRequest) -> HttpResponse:
    """Upload a chain with its key under a new name."""
    return _upload(request, None)


@page
def renew(request: PageRequest, pk: int) -> HttpResponse:
    """Replace the chain of a certificate; listeners that use it keep using it."""
    return _upload(request, selectors.only(selectors.certificates(request.actor), pk))


def _upload(request: PageRequest, stored: Certificate | None) -> HttpResponse:
    request.actor.may_write()
    data, files = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    form = CertificateForm(data, files, stored=stored, is_operator=request.actor.is_operator)
    if data is not None:
        if form.is_valid():
            typed = _typed(request, form, stored)
            with refusals_in(form):
                saved = save(request, typed)
                tell(request, typed, saved, f"Certificate {saved.name} is saved. {_what_next(typed)}")
                return redirect("web:certificates")
        form.forget_key()
    context = {"form": form, "stored": stored, "version": version_shown(request, stored)}
    return show(request, form.template, context, status=422 if form.is_bound else 200)


def _what_next(typed: Typed) -> str:
    ordered = "Spillway orders it now; the list says how it stands."
    return ordered if "automatic" in typed.spec else "Listeners that use it present it now."


def _typed(request: PageRequest, form: CertificateForm, stored: Certificate | None) -> Typed:
    name, account = (form.cleaned_data.get(field, "") for field in ("/name", "/account"))
    version = version_sent(request)
    return Typed(kind="Certificate", row=stored, name=name, account=account, spec=form.spec(), version=version)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a certificate that no listener uses, once its name was typed."""
    stored = selectors.only(selectors.certificates(request.actor), pk)
    deleted_by_name(request, "Certificate", stored, f"Certificate {stored.name} is deleted.")
    return redirect("web:certificates")
