"""A load balancer by page on its way out: each format with what it leaves out, and the archive itself."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpResponse

from apps.core.errors import Forbidden, Invalid
from apps.definitions.models import LoadBalancer
from apps.definitions.selectors import load_balancers, only
from apps.exporting.folders import archive_of
from apps.exporting.services import FORMATS, Format, export_by_request
from apps.web.kit.pages import PageRequest, operators_only, page, show


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """The formats; with `format`, the zip of that one."""
    operators_only(request.actor, "export")
    balancer = only(load_balancers(request.actor), pk)
    context = {"balancer": balancer, "formats": [(each, _links(balancer, each)) for each in FORMATS.values()]}
    form = request.GET.get("format", "")
    if not form:
        return show(request, "pages/export/detail.html", context)
    try:
        name = f"{balancer.account.name}/{balancer.name}"
        within = request.GET.get("stack" if form == "terraform" else "fleet", "")
        found = export_by_request(request.actor, name, form, within=within)
    except (Invalid, Forbidden) as error:
        return show(request, "pages/export/detail.html", {**context, "refusal": error.detail}, status=422)
    called = f"{balancer.name}-{form}"
    headers = {"Content-Disposition": f'attachment; filename="{called}.zip"'}
    return HttpResponse(archive_of(found, called), content_type="application/zip", headers=headers)


def _links(balancer: LoadBalancer, form: Format) -> list[tuple[str, str]]:
    """Words and query of each download: one for each within whose servers can be written."""
    if not form.of:
        return [("Download", "?" + urlencode({"format": form.name}))]
    within = [each.name for each in (balancer.fleets if form.of == "fleet" else balancer.stacks).all()]
    return [
        (
            f"Download for {name}" if len(within) > 1 else "Download",
            "?" + urlencode({"format": form.name, form.of: name}),
        )
        for name in within
    ]
