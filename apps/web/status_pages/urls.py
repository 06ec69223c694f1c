"""What everybody may read of status pages, signed in or not."""

from __future__ import annotations

from django.urls import path
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView

from apps.web.status_pages import public

app_name = "status"
urlpatterns = [
    path("status", require_safe(RedirectView.as_view(pattern_name="web:status-pages")), name="own"),
    path("status/<slug:name>", public.page, name="page-without-slash"),
    path("status/<slug:name>/", public.page, name="page"),
    path("status/<slug:name>/feed.atom", public.feed, name="feed"),
]
