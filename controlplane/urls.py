"""The URLs: the API below /api/v1/, everything else is pages."""

from django.urls import include, path, re_path

from apps.api import enrolment, hooks
from apps.api.v1.protocol.problems import no_such_url

urlpatterns = [
    path("api/v1/", include("apps.api.v1.urls")),
    re_path(r"^api/", no_such_url),
    re_path(r"^hooks/(?P<key_id>[A-Za-z0-9_-]{1,64})$", hooks.call, name="hook"),
    path("enrol", enrolment.call, name="enrol"),
    path("enrol/ca", enrolment.authority, name="enrol-ca"),
    path("", include("apps.observe.urls")),
    path("", include("apps.stacks.urls")),
    path("", include("apps.web.status_pages.urls")),
    path("", include("apps.web.urls")),
    path("", include("apps.web.sign_in.urls")),
]

handler400 = "controlplane.failures.bad_request"
handler403 = "apps.web.kit.errors.forbidden"
handler404 = "apps.web.kit.errors.not_found"
handler500 = "controlplane.failures.server_error"
