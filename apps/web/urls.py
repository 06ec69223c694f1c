"""SHOW to people: every page by noun; a noun's views stand in the module of its name."""

from __future__ import annotations

from django.urls import path

from apps.web import (
    certificates,
    fleets,
    load_balancers,
    overflow,
    overview,
    pool_limits,
    pools,
    regions,
    rollouts,
    route_editing,
    routes,
    search,
    sessions,
    static_ips,
)

app_name = "web"
urlpatterns = [
    path("sign-in", sessions.sign_in, name="sign-in"),
    path("sign-out", sessions.sign_out, name="sign-out"),
    path("", overview.overview, name="overview"),
    path("search", search.search, name="search"),
    path("load-balancers", load_balancers.index, name="load-balancers"),
    path("load-balancers/<int:pk>", load_balancers.detail, name="load-balancer"),
    path("routes", routes.index, name="routes"),
    path("routes/new", route_editing.new, name="route-new"),
    path("routes/check", route_editing.check, name="route-check"),
    path("routes/<int:pk>", routes.detail, name="route"),
    path("routes/<int:pk>/edit", route_editing.edit, name="route-edit"),
    path("routes/<int:pk>/delete", routes.delete, name="route-delete"),
    path("pools", pools.index, name="pools"),
    path("pools/new", pools.new, name="pool-new"),
    path("pools/<int:pk>", pools.detail, name="pool"),
    path("pools/<int:pk>/edit", pools.edit, name="pool-edit"),
    path("pools/<int:pk>/delete", pools.delete, name="pool-delete"),
    path("pools/<int:pk>/limit", pool_limits.change, name="pool-limit"),
    path("pools/<int:pk>/servers", pools.set_servers, name="pool-servers"),
    path("overflow", overflow.index, name="overflow"),
    path("regions", regions.index, name="regions"),
    path("regions/<slug:name>", regions.detail, name="region"),
    path("regions/<slug:name>/drain", regions.drain, name="region-drain"),
    path("fleets", fleets.index, name="fleets"),
    path("fleets/<int:pk>/push", fleets.push_again, name="fleet-push"),
    path("fleets/<int:pk>/resume", fleets.resume, name="fleet-resume"),
    path("nodes/<int:pk>", fleets.node, name="node"),
    path("rollouts", rollouts.index, name="rollouts"),
    path("rollouts/<int:pk>", rollouts.detail, name="rollout"),
    path("revisions/<int:pk>/roll-back", rollouts.roll_back, name="roll-back"),
    path("static-ips", static_ips.index, name="static-ips"),
    path("certificates", certificates.index, name="certificates"),
    path("certificates/new", certificates.new, name="certificate-new"),
    path("certificates/<int:pk>/renew", certificates.renew, name="certificate-renew"),
    path("certificates/<int:pk>/delete", certificates.delete, name="certificate-delete"),
]
