"""Forms follow the table of capabilities: each form is walked with each row, on each target."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest
from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.compiler.model.capabilities import NodeBuild
from apps.compiler.portability.incompatibilities import Target
from apps.compiler.portability.table.asking import READ_BY_NO_TARGET, TABLE, rows_of
from apps.compiler.portability.table.cells import VERSIONS, Cell, Column, Row, Verdict
from apps.definitions.models import LoadBalancer, Pool
from apps.definitions.previewing.capabilities import Standing
from apps.definitions.reading.describing import describe
from apps.definitions.services import save_object
from apps.fleet.models import Fleet, Node
from apps.fleet.selectors import regions
from apps.observe.models import NodeReport
from apps.web import load_balancers, policies, pools, routes
from apps.web.capabilities.notes import Named, Note, path_of
from apps.web.load_balancers.forms import ListenerForm
from apps.web.policies.form import PolicyForm
from apps.web.pools.form import PoolForm
from apps.web.routes.form import RouteEntry
from tests.apps.clouds_env import operator_of
from tests.apps.mirror_env import GOOGLE
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_routes import text, typed

pytestmark = pytest.mark.django_db

FRONTS = {Column.ALB: "cloud", Column.NLB: "cloud", Column.GOOGLE: "everywhere"}
LISTENER = "/spec/listeners/0"
# Fields that no row needs to speak of.
NEED_NO_ROW = {
    "version": "guards against a second edit",
    "began": "guards against a second edit",
    "name": "is the same on every target",
    "/name": "is the same on every target",
    "account": "is the same on every target",
    "/account": "is the same on every target",
    "reason": "goes to the audit log",
    "action": "chooses between fields that have rows",
    "DELETE": "marks a row that was removed",
}
# Rows of which no form has a field.
IN_NO_FORM = {
    **{f"Route {row.name}": "rules of one route are set by documents" for row in TABLE["Policy"]},
    "LoadBalancer listeners.client_certificates": "lists of objects are set by documents",
}
WALKED = {"RouteForm", "PoolForm", "ConditionForm", "PolicyForm", "ListenerForm"}
# Other forms beside them.
NOT_WALKED = {
    "ClaimForm": "claims a hostname, which carries no rules",
    "LoadBalancerForm": "says on which targets it stands",
    "AuthorityForm": "is of a kind that the table does not have",
    "CertificateForm": "is of a kind that the table does not have",
    "NetworkListForm": "is of a kind that the table does not have",
    "ImportForm": "takes whole documents, of which each line is judged",
    "PlanForm": "says how servers are replaced",
    "TraceForm": "asks what happens to a request",
}
Walk = tuple[list[Named], list[Note]]


@pytest.fixture
def operator(db: None) -> Actor:
    """The operator, with load balancers on every target."""
    return operator_of(GOOGLE)


def standing(column: Column) -> Standing:
    """A load balancer on the target of this column."""
    if column in VERSIONS:
        return Standing(Target.HAPROXY, "front", (NodeBuild("", VERSIONS[column], http3=True),))
    return Standing(Target.GOOGLE if column is Column.GOOGLE else Target.AWS, FRONTS[column])


def route_form(actor: Actor, column: Column, sent: Mapping[str, str]) -> Walk:
    chosen = {"load_balancer": FRONTS.get(column, "front")}
    counts = {f"{name}-{count}_FORMS": "0" for name in ("pools", "headers", "query", "cookies") for count in COUNTS}
    rows = {f"{name.partition('-')[0]}-TOTAL_FORMS": "1" for name in sent if "-0-" in name}
    data = _data({**chosen, **counts, **rows, **sent}) if sent else None
    entry = RouteEntry(actor, None, data, chosen)
    return list(entry.named()), entry.capabilities


COUNTS = ("TOTAL", "INITIAL")


def pool_form(actor: Actor, column: Column, sent: Mapping[str, str]) -> Walk:
    protocol = {"/spec/protocol": "tcp" if column is Column.NLB else "http"}
    data = _data({**protocol, **sent}) if sent else None
    there = list(regions(actor))
    return _named(PoolForm(data, actor=actor, regions=there, begin=protocol, standings=[standing(column)]))


def policy_form(actor: Actor, column: Column, sent: Mapping[str, str]) -> Walk:
    if column in VERSIONS:
        report("front", f"{column.removeprefix('HAProxy ')}.1")
    chosen = {"/spec/default_for/load_balancers": FRONTS.get(column, "front")}
    return _named(PolicyForm(_data({**chosen, **sent}), stored=None, actor=actor))


def listener_form(actor: Actor, column: Column, sent: Mapping[str, str]) -> Walk:
    protocol = "tcp" if column is Column.NLB else "https"
    document = {"name": "web", "protocol": protocol, "port": 443}
    data = _data({f"{LISTENER}/protocol": protocol, **sent}) if sent else None
    return _named(ListenerForm(data, actor=actor, document=document, pointer=LISTENER, standings=[standing(column)]))


FORMS: dict[str, Callable[[Actor, Column, Mapping[str, str]], Walk]] = {
    "Route": route_form,
    "Pool": pool_form,
    "Policy": policy_form,
    "LoadBalancer": listener_form,
}
# An NLB has no routes, and so no use for policies.
OF_REQUESTS = ("Route", "Policy")
CASES = [(kind, column) for kind in FORMS for column in Column if kind not in OF_REQUESTS or column is not Column.NLB]


def report(load_balancer: str, *versions: str) -> None:
    """Nodes of its fleets report these versions of HAProxy; those that are left report none."""
    nodes = Node.objects.filter(fleet__load_balancers__name=load_balancer).order_by("name")
    NodeReport.objects.filter(node__in=nodes).update(haproxy_version="")
    for node, version in zip(nodes, versions, strict=False):
        NodeReport.objects.update_or_create(node=node, defaults={"haproxy_version": version})


def _data(sent: Mapping[str, str]) -> QueryDict:
    data = QueryDict(mutable=True)
    data.update(sent)
    return data


def _named(form: Any) -> Walk:
    return [(form[name], path_of(name)) for name in form.fields], form.capabilities


def is_greyed(bound: forms.BoundField) -> bool:
    return "disabled" in bound.field.widget.attrs


def texts(bound: forms.BoundField) -> str:
    """What is said of a field by the notes that its control names."""
    described = bound.field.widget.attrs.get("aria-describedby", "").split()
    notes: Iterable[Note] = getattr(bound.field, "notes", ())
    return " ".join(line for note in notes if note.id in described for _, line in note.lines)


def option_is_greyed(bound: forms.BoundField, value: str) -> bool:
    return f'<option value="{value}" disabled>' in str(bound)


def wrong(kind: str, named: Iterable[Named], column: Column, *, kept: bool = False) -> list[str]:
    """How the form contradicts the table; `kept`: its refused fields have values."""
    found = []
    for bound, path in named:
        rows = rows_of(kind, path) if path else ()
        own = [row.on(column) for row in rows if not row.value]  # at most one
        refused = any(cell.verdict is Verdict.NOT for cell in own)
        if is_greyed(bound) != (refused and not kept):
            found.append(f"{bound.html_name} is {'' if is_greyed(bound) else 'not '}greyed")
        found += [
            f"{bound.html_name} does not say: {cell.message}"
            for cell in (row.on(column) for row in rows)
            if cell.verdict in (Verdict.NOT, Verdict.LOSSY) and cell.message not in texts(bound)
        ]
        for row in (row for row in rows if row.value and not refused):
            if option_is_greyed(bound, row.value) != (row.on(column).verdict is Verdict.NOT):
                found.append(f"{bound.html_name} offers {row.value}")
    return found


@pytest.mark.parametrize(("kind", "column"), CASES)
def test_a_form_greys_what_a_target_refuses_and_says_why(operator: Actor, kind: str, column: Column) -> None:
    named, _ = FORMS[kind](operator, column, {})
    assert wrong(kind, named, column) == []


@pytest.mark.parametrize("kind", FORMS)
def test_a_form_that_does_not_follow_is_found(operator: Actor, kind: str) -> None:
    named, _ = FORMS[kind](operator, Column.HAPROXY_3_2, {})
    found = wrong(kind, named, Column.GOOGLE)
    assert any("not greyed" in each for each in found)
    assert any("does not say" in each for each in found)


@pytest.mark.parametrize("kind", FORMS)
def test_each_field_of_a_form_has_a_row_or_needs_none(operator: Actor, kind: str) -> None:
    assert without_row(kind, FORMS[kind](operator, Column.ALB, {})[0]) == []


def test_a_field_without_a_row_is_found(operator: Actor) -> None:
    named, _ = pool_form(operator, Column.ALB, {})
    (bound,) = [bound for bound, path in named if path == "balance"]
    assert without_row("Pool", [*named, (bound, "mirrored")]) == ["mirrored"]


def without_row(kind: str, named: Iterable[Named]) -> list[str]:
    """Fields of which no row speaks and that are not known to need none."""
    of_nobody = [Row(field) for field in READ_BY_NO_TARGET[kind]]
    return [
        path or bound.html_name
        for bound, path in named
        if bound.name not in NEED_NO_ROW and bound.html_name not in NEED_NO_ROW
        if not path or not (rows_of(kind, path) or any(row.covers(path) or row.field == path for row in of_nobody))
    ]


def test_all_of_the_form_of_a_route_is_walked(operator: Actor) -> None:
    entry = RouteEntry(operator, None, None, {})
    walked = {bound.html_name for bound, _ in entry.named()}
    assert set(entry.head.fields) - walked - set(NEED_NO_ROW) == set()


@pytest.mark.parametrize("kind", FORMS)
def test_each_row_that_a_target_refuses_has_a_field_or_is_known_to_have_none(operator: Actor, kind: str) -> None:
    named, _ = FORMS[kind](operator, Column.ALB, {})
    there = {row.name for _, path in named if path for row in rows_of(kind, path)}
    refused = {row.name for row in TABLE[kind] if any(row.on(column).verdict is Verdict.NOT for column in Column)}
    assert {f"{kind} {name}" for name in refused - there} <= set(IN_NO_FORM)


def test_each_form_of_these_kinds_is_walked_or_known_not_to_need_it() -> None:
    there = {name for package in (load_balancers, policies, pools, routes) for name in _forms_of(package)}
    assert there <= WALKED | set(NOT_WALKED)
    assert there >= WALKED


def _forms_of(package: ModuleType) -> Iterable[str]:
    for module in iter_modules(package.__path__):
        found = import_module(f"{package.__name__}.{module.name}")
        for name, each in inspect.getmembers(found, inspect.isclass):
            if issubclass(each, forms.Form) and each.__module__ == found.__name__:
                yield name


def some_value(bound: forms.BoundField) -> str:
    """A value that is not the default."""
    choices = [str(value) for value, _ in getattr(bound.field.widget, "choices", ())]
    return next((value for value in choices if value and value != bound.field.initial), "77")


def filled(kind: str, named: Iterable[Named], column: Column) -> tuple[dict[str, str], list[Cell]]:
    """What a browser would send of refused fields, had each a value; and what the table says of them."""
    sent, cells = {}, []
    for bound, path in named:
        for row in rows_of(kind, path) if path else ():
            if not row.value and row.on(column).verdict is Verdict.NOT:
                sent[bound.html_name.replace("__prefix__", "0")] = some_value(bound)
                cells.append(row.on(column))
    return sent, cells


@pytest.mark.parametrize(("kind", "column"), [case for case in CASES if case[1] in FRONTS])
def test_a_field_that_has_a_value_is_never_greyed(operator: Actor, kind: str, column: Column) -> None:
    sent, cells = filled(kind, FORMS[kind](operator, column, {})[0], column)
    if not sent:
        return
    named, notes = FORMS[kind](operator, column, sent)
    assert [bound.html_name for bound, _ in named if is_greyed(bound)] == []
    said = " ".join(line for note in notes for _, line in note.lines)
    assert [cell.remedy for cell in cells if cell.message not in said or cell.remedy not in said] == []


def test_an_object_that_is_there_is_not_greyed_in_parts(operator: Actor) -> None:
    for switch, state in (("", "greyed"), ("on", "kept")):
        sent = {"/spec/protocol": "tcp", "/spec/server_tls/verify": "system"} | (
            {"/spec/server_tls": "on"} if switch else {}
        )
        _, notes = pool_form(operator, Column.NLB, sent)
        states = {note.state for note in notes for bound in note.fields if "/server_tls" in bound.html_name}
        assert states == {state}


def test_a_refused_value_that_is_chosen_can_be_read_and_taken_away(operator: Actor) -> None:
    named, notes = route_form(operator, Column.ALB, {"path_kind": "regex"})
    (kind,) = [bound for bound, path in named if path == "path_kind"]
    assert '<option value="regex" selected>' in str(kind)
    (note,) = [note for note in notes if note.fields == [kind]]
    assert [each for each, _ in note.lines] == ["kept"]


def test_nothing_is_greyed_where_nobody_knows_where_it_stands(operator: Actor) -> None:
    for chosen in ("", "nowhere", "there-is-none"):
        named, _ = route_form(operator, Column.HAPROXY_2_6, {"load_balancer": chosen})
        assert [bound for bound, _ in named if is_greyed(bound) or texts(bound)] == []
    form = PolicyForm(None, stored=None, actor=operator)
    assert [name for name in form.fields if is_greyed(form[name])] == []
    assert PoolForm(actor=operator, regions=[]).capabilities == []


@pytest.mark.parametrize(
    ("versions", "greyed"),
    [((), False), (("2.6.12",), True), (("3.0.1",), False), (("3.2.0", "2.6.12"), True), (("3.2.0", "new"), False)],
)
def test_the_oldest_known_build_of_a_fleet_counts(operator: Actor, versions: tuple[str, ...], greyed: bool) -> None:
    Node.objects.exclude(fleet=Fleet.objects.filter(load_balancers__name="front").first()).update(
        fleet=Fleet.objects.filter(load_balancers__name="front").first()
    )
    report("front", *versions)
    form = PolicyForm(_data({"/spec/default_for/load_balancers": "front"}), stored=None, actor=operator)
    field = form["/spec/rules/bandwidth/download_bytes_per_s"]
    assert is_greyed(field) == greyed
    assert ("Not on HAProxy 2.6 (load balancer front). Bandwidth limits need" in texts(field)) == greyed


def test_a_policy_says_which_of_its_targets_refuses(operator: Actor) -> None:
    data = _data({"/spec/default_for/load_balancers": "front\ncloud\neverywhere"})
    said = texts(PolicyForm(data, stored=None, actor=operator)["/spec/rules/cors/origins"])
    assert "Not on AWS (load balancer cloud). An ALB sets CORS headers" in said
    assert "Not on Google Cloud (load balancer everywhere). Spillway has not tested CORS" in said
    assert "HAProxy" not in said


def test_a_customer_reads_names_of_load_balancers_only_where_it_uses_them(operator: Actor, acme: Actor) -> None:
    client = client_of(acme)
    pool = Pool.objects.get(name="shop")
    assert client.post("/routes/new", typed(load_balancer="cloud")).status_code == 302
    assert "Not on AWS (load balancer cloud)." in text(client.get(f"/pools/{pool.pk}/edit"))


def test_a_stored_value_survives_a_form_on_a_target_that_refuses_it(operator: Actor) -> None:
    rules = {"cors": {"origins": ["*"]}, "log": {"requests": "errors"}}
    row = save_object(actor=operator, kind="Policy", name="open", spec={"rules": rules})
    row.load_balancers.add(LoadBalancer.objects.get(name="cloud"))  # as it was stored before that was checked
    client, page = client_of(operator), f"/policies/{row.pk}/edit"
    form = client.get(page).context["form"]
    assert not is_greyed(form["/spec/rules/cors/origins"])
    assert is_greyed(form["/spec/rules/body/max_bytes"])
    before = describe(row)
    assert client.post(page, sent_by_a_browser(form) | {"version": str(row.version)}).status_code == 302
    assert describe(type(row).objects.get(pk=row.pk)) == before
    removed = sent_by_a_browser(form) | {"version": str(row.version), "/spec/rules/cors/origins": ""}
    assert client.post(page, removed).status_code == 302
    assert describe(type(row).objects.get(pk=row.pk))["rules"] == {"log": {"requests": "errors"}}


def test_what_a_browser_does_not_send_of_greyed_fields_stays_as_it_was(operator: Actor, acme: Actor) -> None:
    client, pool = client_of(acme), Pool.objects.get(name="shop")
    assert client.post("/routes/new", typed(load_balancer="cloud")).status_code == 302
    page, before = f"/pools/{pool.pk}/edit", describe(pool)
    form = client.get(page).context["form"]
    sent = sent_by_a_browser(form)
    assert "/spec/proxy_protocol" not in sent
    answer = client.post(page, sent | {"version": str(pool.version)})
    assert answer.status_code == 302, answer.context["form"].errors
    assert describe(Pool.objects.get(pk=pool.pk)) == before


def sent_by_a_browser(form: Any) -> dict[str, str]:
    """The fields of a form that are not greyed."""
    shown = {
        bound.html_name: bound.value() for bound in form if not is_greyed(bound) and "__prefix__" not in bound.name
    }
    return {name: str(value) for name, value in shown.items() if value not in (None, False, "")}


def test_a_question_of_a_form_stores_nothing(operator: Actor) -> None:
    client, pool = client_of(operator), Pool.objects.get(name="shadow")
    said = text(client.post("/policies/new?partial=capabilities", {"/name": "x", "/spec/rules/body/max_bytes": "9"}))
    assert said.count('hx-swap-oob="true"') > 10
    assert "<form" not in said
    for page in (f"/pools/{pool.pk}/edit", "/policies/new"):
        assert client.post(f"{page}?partial=else", {}).status_code == 404
    assert not operator.account.policy_set.exists()


def test_a_listener_follows_its_protocol_and_where_its_load_balancer_stands(operator: Actor) -> None:
    client, front = client_of(operator), LoadBalancer.objects.get(name="cloud")
    page = f"/load-balancers/{front.pk}/listeners/new"
    form = client.get(page).context["form"]
    limit, names = form["/spec/listeners/1/client_limit/connections"], form["/spec/listeners/1/sni_routes"]
    assert is_greyed(limit)
    assert texts(limit) == "Not on this load balancer. AWS does not limit the new connections of a client."
    assert is_greyed(names)
    for protocol, lost in (("https", "An ALB does not serve HTTP/3"), ("tcp", "An NLB offers only h2")):
        sent = {"/spec/listeners/1/name": "tls", "/spec/listeners/1/protocol": protocol}
        assert lost in text(client.post(f"{page}?partial=capabilities", sent))
