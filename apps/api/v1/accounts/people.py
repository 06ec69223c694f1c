"""Who is in an account, with which role, and invitations for more."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.v1.accounts import member_shapes
from apps.api.v1.protocol import requests
from apps.api.v1.views import DetailView, ListView, one
from apps.api.v1.writes import no_dry_run
from apps.core.errors import Conflict, FieldError, Invalid
from apps.members import invitations, people, selectors


class MembershipDetail(DetailView):
    """GET a person's membership; PATCH the role; DELETE takes the person out of the account."""

    noun = "memberships"

    def patch(self, request: Request, pk: str) -> Response:
        """`{role}`, with `If-Match`."""
        actor, row = requests.actor_of(request), one(selectors.memberships(requests.actor_of(request)), pk)
        no_dry_run(request)
        data = requests.only(request, ("role",))
        version = requests.expected_version(request, present=row.version)
        changed = people.change_role(
            actor=actor,
            membership_id=row.pk,
            role=data.get("role"),
            expected_version=version,
            reason=requests.reason(request),
        )
        shape = member_shapes.membership(changed, actor)
        return Response(shape, headers={"ETag": requests.etag(changed.version)})

    def delete(self, request: Request, pk: str) -> Response:
        """With `If-Match`; 409 for the last one who manages the account."""
        actor, row = requests.actor_of(request), one(selectors.memberships(requests.actor_of(request)), pk)
        no_dry_run(request)
        version = requests.expected_version(request, present=row.version)
        people.remove_person(
            actor=actor, membership_id=row.pk, expected_version=version, reason=requests.reason(request)
        )
        return Response(status=204)


class InvitationList(ListView):
    """GET open invitations, POST a new one."""

    noun = "invitations"

    def post(self, request: Request) -> Response:
        """`{email, role, account?, mail?}`; the answer has the `link`, this once, unless it was mailed."""
        no_dry_run(request)
        data = requests.only(request, ("email", "role", "account", "mail"))
        mail = _mail(data.pop("mail", False))
        row, secret = invitations.invite(
            actor=requests.actor_of(request),
            email=data.get("email"),
            role=data.get("role"),
            account=data.get("account"),
            reason=requests.reason(request),
        )
        link = request.build_absolute_uri(reverse("web:invitation", args=[secret]))
        mailed = mail and invitations.mail_link(invitation=row, link=link)
        shape = member_shapes.invitation(row, requests.actor_of(request)) | {"link": None if mailed else link}
        return created(shape, f"/api/v1/invitations/{row.pk}")


def _mail(value: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Invalid([FieldError("/mail", "not_boolean", "Write true or false, without quotes.")])
    if value and not invitations.mail_works():
        raise Conflict("This installation cannot send mail; leave out mail and send the link yourself.")
    return value


class InvitationDetail(DetailView):
    """GET an open invitation; DELETE takes it back."""

    noun = "invitations"

    def delete(self, request: Request, pk: str) -> Response:
        """Invitations are made and taken back, never changed, so `If-Match` may be left out."""
        actor, row = requests.actor_of(request), one(selectors.invitations(requests.actor_of(request)), pk)
        no_dry_run(request)
        check_version(request)
        invitations.take_back(actor=actor, invitation_id=row.pk, reason=requests.reason(request))
        return Response(status=204)


def created(shape: dict[str, Any], location: str) -> Response:
    """201; what is in it is shown this once, so nobody on the way may keep it."""
    headers = {"Location": location, "ETag": requests.etag(shape["version"]), "Cache-Control": "no-store"}
    return Response(shape, status=201, headers=headers)


def check_version(request: Request) -> None:
    """Raise Stale for an `If-Match` that cannot be met; leaving it out is no error."""
    if "If-Match" in request.headers:
        requests.expected_version(request, present=member_shapes.ONLY_VERSION)
