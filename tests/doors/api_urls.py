"""The URLs of the API alone, so that its tests do not wait for the pages."""

from __future__ import annotations

from django.urls import include, path, re_path

from apps.api.v1.problems import no_such_url

urlpatterns = [path("api/v1/", include("apps.api.v1.urls")), re_path(r"^api/", no_such_url)]
