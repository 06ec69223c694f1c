"""What every page does: know the actor, answer whole or in part, turn refusals into pages."""

from __future__ import annotations

import functools
import hashlib
import math
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Concatenate, NamedTuple, ParamSpec
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.cache import cache
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import rotate_token
from django.shortcuts import redirect, render
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.urls import reverse
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from apps.accounts.actors import Actor, memberships_of
from apps.accounts.choosing import CHOSEN, IMPERSONATION, actor_of_session
from apps.accounts.models import Account, Membership
from apps.core import events
from apps.core.caching import made_once
from apps.core.errors import Forbidden, NotFound
from apps.core.requests import answers_kept, request_id
from apps.definitions.services import managing
from apps.members import impersonation

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
PageView = Callable[Concatenate["PageRequest", P], HttpResponse]
METHODS = ("GET", "HEAD", "POST")  # what links and forms send
# Not everything on a page tells that it moved, and a collector may be away: without an event, too, it is made anew.
PART_LASTS_S = 2
# Who asks while a part is made gets the one before, else tabs that wait would hold all threads. One that takes long, as
# of a thousand nodes, rests for so many times as long as it took.
ONE_BEFORE_LASTS_S, SLOW_S, RESTS = 60, 0.5, 3
# A process that makes parts for more than this share of its time, summed over its threads and fading in so many
# seconds, makes each anew only after so many seconds for the whole of its time: who opens a page comes first.
BUSY, FADES_S, HELD_S = 0.5, 10.0, 8.0
# What Django notes of a request for which it made the token of a form.
HAS_A_FORM = "CSRF_COOKIE_NEEDS_UPDATE"
# A form that has a field for it says so beside the field; what psycopg says where nobody did.
NUL = "A field of the form holds a character (NUL) that is no text; remove it."
NUL_REFUSED = "cannot contain NUL"


class PageRequest(HttpRequest):
    """A request of somebody who is signed in: it knows the actor, and in which accounts the person is."""

    actor: Actor
    memberships: list[Membership]


def page(view: PageView[P]) -> View[P]:
    """Let only signed-in members in, and answer what may not be seen like what does not exist."""

    @require_http_methods(METHODS)
    @signed_in
    @functools.wraps(view)
    def guarded(request: Any, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        actor = recognise(request)
        if actor.account.suspended_at and not actor.impersonating:
            return render(request, "pages/accounts/suspended.html", {"actor": actor}, status=403)
        try:
            with managing(break_glass=request.POST.get("break_glass") == "true"), _reading(request):
                return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.detail) from error
        except Forbidden as error:
            raise PermissionDenied(error.detail) from error
        except DataError as error:
            if NUL_REFUSED not in str(error):
                raise
            raise BadRequest(NUL) from error

    return guarded


def _reading(request: HttpRequest) -> AbstractContextManager[None]:
    """A page that only reads asks no question twice."""
    return answers_kept() if request.method in ("GET", "HEAD") else nullcontext()


def post_page(view: PageView[P]) -> View[P]:
    """A page that only changes something: forms post to it."""

    @functools.wraps(view)
    def sent(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if any("\0" in text for _, texts in request.POST.lists() for text in texts):
            raise BadRequest(NUL)
        return view(request, *args, **kwargs)

    return forms_only(page(sent))


def forms_only(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
    """Say so to who opens the address of a form, as by reloading after it was refused; Django's answer is blank."""

    @functools.wraps(view)
    def sent(*args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        request: Any = args[0]
        if request.method == "POST":
            return view(*args, **kwargs)
        answer = render(request, "405.html", {"request_id": request_id()}, status=405)
        answer.headers["Allow"] = "POST"
        return answer

    return sent


def signed_in(view: Callable[Concatenate[Any, P], HttpResponse]) -> View[P]:
    """Lead strangers to the sign-in page, and from there to the page that they were looking at."""

    @functools.wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        return redirect_to_login(page_of(request))

    return guarded


def page_of(request: HttpRequest) -> str:
    """A page as it was asked for; for a part of one, and for what a form sends, the page that this stands on."""
    if request.method != "POST" and "HX-Request" not in request.headers:
        return request.get_full_path()
    page = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        return reverse("web:overview")
    return urlsplit(page)._replace(scheme="", netloc="", fragment="").geturl() or "/"


def recognise(request: Any) -> Actor:
    """Who acts for which account, noted on the request; PermissionDenied for a person without any account."""
    request.memberships = memberships_of(request.user)
    actor = actor_of_session(request.user, request.session, request.memberships)
    if actor is None:
        raise PermissionDenied("You are signed in but belong to no account. Ask an operator to invite you to one.")
    if not actor.impersonating and IMPERSONATION in request.session:
        impersonation.end(name=actor.name, session=request.session.pop(IMPERSONATION))  # the hour is over
    if not actor.impersonating:
        _stay_in(request, actor.account)
    request.actor = actor
    return actor


def _stay_in(request: Any, account: Account) -> None:
    """Somebody taken out of the account whose forms stand open does nothing by them in another one."""
    before = request.session.get(CHOSEN)
    if before == account.pk:
        return
    request.session[CHOSEN] = account.pk
    if before is not None:
        rotate_token(request)
        if request.method == "POST":
            raise PermissionDenied("Nothing was saved. You are no longer a member of the account that this form is of.")


def operators_only(actor: Actor, what: str) -> None:
    """Answer customers as if the page did not exist; `what` is the page's name."""
    if not actor.is_operator:
        raise NotFound(f"Page {what} does not exist.")


def show(request: PageRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Render the page, or the one partial of it that `?partial=` names; Http404 where it has no such part."""
    name = _part_of(template, request.GET.get("partial", ""))
    may_write = request.actor.role != "viewer"
    response = render(request, name, {"actor": request.actor, "may_write": may_write, **context}, status=status)
    if name != template:
        # Blanks around a part would stay in the page, two more text nodes with each swap.
        response.content = response.content.strip()
    patch_vary_headers(response, ["HX-Request"])
    return response


class _Part(NamedTuple):
    """A part as it was made at a time (Unix seconds), and the seconds of a processor that it took."""

    content: bytes
    at: float
    took: float


class _Making:
    """How much of its time this process makes parts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds, self._at = 0.0, time.monotonic()

    def __call__(self, more_s: float = 0.0) -> float:
        """The share, to which so many seconds are added first."""
        with self._lock:
            instant = time.monotonic()
            self._seconds = self._seconds * math.exp((self._at - instant) / FADES_S) + more_s
            self._at = instant
            return self._seconds / FADES_S


_making = _Making()


def shared_parts(*topics: events.Topic) -> Callable[[PageView[P]], PageView[P]]:
    """Below `@page`: make a part (`?partial=`) once after each event of these topics.

    So nothing in it may depend on the person, or on anything of the request but its path and query. Of a part with a
    form, which has a token of one person, each tab has its own. `Age` says how many seconds old the one before is.
    """

    def decorated(view: PageView[P]) -> PageView[P]:
        @functools.wraps(view)
        def shared(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            turns = events.turns(topics) if request.GET.get("partial") and request.method == "GET" else None
            if turns is None:
                return view(request, *args, **kwargs)
            own: list[HttpResponse] = []
            key = _key(request)

            def make() -> bytes:
                began, used = time.monotonic(), time.thread_time()
                own.append(view(request, *args, **kwargs))
                _making(time.monotonic() - began)
                if _is_of_one_tab(request, own[0]):
                    return b""
                part = _Part(own[0].content, time.time(), time.thread_time() - used)
                cache.set(key, part, ONE_BEFORE_LASTS_S)
                return part.content

            before: _Part | None = cache.get(key)
            old = before.content if before else None
            content = old if before and _rests(before) else made_once(f"{key}:{turns}", make, PART_LASTS_S, old)
            if not content:
                return own[0] if own else view(request, *args, **kwargs)
            response = HttpResponse(content)
            if before and content is old:
                response["Age"] = int(time.time() - before.at)
            patch_vary_headers(response, ["HX-Request"])
            return response

        return shared

    return decorated


def _rests(part: _Part) -> bool:
    """Whether it is too early to make this part anew."""
    busy = _making()
    rest = RESTS * part.took if part.took > SLOW_S else 0.0
    return time.time() - part.at < max(rest, HELD_S * busy if busy > BUSY else 0.0)


def _is_of_one_tab(request: PageRequest, answer: HttpResponse) -> bool:
    return answer.status_code != 200 or "HX-Replace-Url" in answer or HAS_A_FORM in request.META


def _key(request: PageRequest) -> str:
    actor = request.actor
    words = (request.get_full_path(), actor.account.pk, actor.role, actor.impersonating)
    # Another word than `part`: under that one, consoles of the version before keep bytes, which are no `_Part`.
    return f"page-part:{hashlib.sha256(repr(words).encode()).hexdigest()}"


def onward(request: PageRequest, to: str, *args: object) -> HttpResponse:
    """After saving: to a page, or back to the first steps for somebody who came from there (`?first=1`)."""
    return redirect("web:overview") if "first" in request.GET else redirect(to, *args)


def back_to(request: HttpRequest, default: str) -> str:
    """The page of ours from which a form was sent (`back`), or this one."""
    back = request.POST.get("back", "")
    here = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return back if here else default


def show_once(request: PageRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Render a page with a secret that is shown this once; nobody on the way may keep it."""
    response = show(request, template, context, status)
    add_never_cache_headers(response)
    return response


def _part_of(template: str, partial: str) -> str:
    """The name under which a page, or a part of it, is rendered."""
    if not partial:
        return template
    name = f"{template}#{partial}"
    try:
        get_template(name)
    except TemplateDoesNotExist as error:
        raise Http404("This part of the page does not exist.") from error
    return name
