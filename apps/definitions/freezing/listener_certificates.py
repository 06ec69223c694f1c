"""Certificates: which of them each listener presents, and each of them for which names.

A listener presents the certificates that an operator chose for it, and those of every account that has a served route
on its load balancer: each only for names that its account has verified. So no certificate answers for a name of another
account that has its own, and a customer's upload is presented without anybody else's doing. A listener of tcp has no
routes, so it presents those alone that were chosen for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q, QuerySet

from apps.accounts.hostnames.claims import wildcards_over
from apps.accounts.models import Account, Hostname
from apps.compiler.matching.hosts import is_wildcard
from apps.compiler.model.shared import Certificate as Frozen
from apps.compiler.model.shared import Protocol
from apps.core.secrets.sealing import unseal
from apps.definitions.models import Certificate, Listener, Route
from apps.fleet.models import Fleet, Stack


@dataclass(frozen=True, slots=True)
class Presented:
    """Listener → its certificates in the order of their ids, certificate → the names it answers for; primary keys."""

    by_listener: Mapping[int, list[int]]
    names: Mapping[int, tuple[str, ...]]


@dataclass(slots=True)
class _Candidate:
    pk: int
    account: int
    is_operators: bool
    hostnames: list[str]
    began: tuple[datetime, int]
    chosen_by: set[int] = field(default_factory=set)  # load balancers with a listener that names it
    names: set[str] = field(default_factory=set)


def certificates_of(fleet: Fleet) -> Presented:
    """What the listeners of the fleet present."""
    return _presented(Listener.objects.filter(load_balancer__fleets=fleet))


def certificates_in(stack: Stack) -> Presented:
    """What the listeners of the stack present."""
    return _presented(Listener.objects.filter(load_balancer__stacks=stack))


def certificates_on(load_balancer: int) -> Presented:
    """What the listeners of a load balancer (primary key) present."""
    return _presented(Listener.objects.filter(load_balancer=load_balancer))


def frozen_certificates(presented: Presented, shown: Iterable[int] = ()) -> tuple[Frozen, ...]:
    """What is presented, and `shown` to servers, as the compiler reads it, with keys; one query."""
    wanted = {*presented.names, *shown}
    rows = Certificate.objects.filter(pk__in=wanted).order_by("id").select_related("account")
    return tuple(
        Frozen(
            id=f"crt-{row.pk}",
            label=f"{row.account.name}/{row.name}",
            account=row.account.name,
            pem=row.chain_pem + unseal(row.encrypted_key).decode(),
            hostnames=presented.names.get(row.pk) or tuple(row.hostnames),
        )
        for row in rows
    )


def _presented(listeners: QuerySet[Listener]) -> Presented:
    """Six queries, one where no listener ends TLS.

    1. Names that a candidate may answer for: verified ones; chosen by an operator, also those nobody else verified.
    2. Of two candidates of one account for a name, the newest answers, unless an operator chose both.
    3. The operator's own leave a name to its owner, where the owner's certificate is presented as well.
    """
    ending = listeners.filter(Q(protocol=Protocol.HTTPS.value) | Q(certificates__isnull=False)).distinct()
    rows = list(ending.order_by("id").values_list("pk", "load_balancer_id", "protocol"))
    if not rows:
        return Presented({}, {})
    balancers = {pk: balancer for pk, balancer, _ in rows}
    https = {pk for pk, _, protocol in rows if protocol == Protocol.HTTPS}
    chosen = _chosen(balancers)
    accounts = _accounts_with_routes({balancers[pk] for pk in https})
    found = _candidates(balancers, chosen, {account for each in accounts.values() for account in each})
    verified = _verified(found)
    owners = {name: account for account, names in verified.items() for name in names}
    for each in found.values():
        each.names = _verifiable(each.hostnames, verified[each.account])
        if each.chosen_by:
            each.names |= {name for name in each.hostnames if _is_free(name, each, owners)}
    _let_the_newest_answer(found.values())
    _leave_to_owners(found.values(), accounts)
    lists = {
        listener: sorted(
            each.pk
            for each in found.values()
            if each.names
            and (each.pk in chosen[listener] or (listener in https and each.account in accounts[balancer]))
        )
        for listener, balancer in balancers.items()
    }
    return Presented(lists, {each.pk: tuple(sorted(each.names)) for each in found.values() if each.names})


def _chosen(balancers: Mapping[int, int]) -> dict[int, set[int]]:
    """Listener → the certificates that it names."""
    found: dict[int, set[int]] = defaultdict(set)
    pairs = Listener.objects.filter(pk__in=balancers, certificates__isnull=False)
    for listener, certificate in pairs.values_list("pk", "certificates__pk"):
        found[listener].add(certificate)
    return found


def _accounts_with_routes(balancers: set[int]) -> dict[int, set[int]]:
    """Load balancer → the customers that have served routes there, and a certificate."""
    found: dict[int, set[int]] = defaultdict(set)
    owners = Certificate.objects.filter(account__kind=Account.Kind.CUSTOMER).values("account")
    rows = Route.objects.filter(load_balancer__in=balancers, account__in=owners).exclude(hostname__verification="")
    for balancer, account in rows.order_by().values_list("load_balancer_id", "account_id").distinct():
        found[balancer].add(account)
    return found


def _candidates(
    balancers: Mapping[int, int], chosen: Mapping[int, set[int]], accounts: Iterable[int]
) -> dict[int, _Candidate]:
    named = {pk for each in chosen.values() for pk in each}
    rows = Certificate.objects.filter(Q(pk__in=named) | Q(account__in=list(accounts))).exclude(chain_pem="")
    fields = ("pk", "account_id", "account__kind", "hostnames", "not_before")
    found = {
        pk: _Candidate(pk, account, kind == Account.Kind.OPERATOR, list(names), (began, pk))
        for pk, account, kind, names, began in rows.values_list(*fields)
    }
    for listener, keys in chosen.items():
        for key in keys & found.keys():
            found[key].chosen_by.add(balancers[listener])
    return found


def _verified(found: Mapping[int, _Candidate]) -> dict[int, set[str]]:
    """Account → names that it has verified, as far as they concern the candidates."""
    asked = {name for each in found.values() if each.chosen_by for name in each.hostnames}
    asked |= {wildcard for name in asked for wildcard in wildcards_over(name)}
    accounts = {each.account for each in found.values()}
    rows = Hostname.objects.exclude(verification="").filter(
        Q(account__in=accounts) | Q(name__in=asked), released_at=None
    )
    verified: dict[int, set[str]] = defaultdict(set)
    for account, name in rows.values_list("account_id", "name"):
        verified[account].add(name)
    return verified


def _verifiable(hostnames: Iterable[str], verified: set[str]) -> set[str]:
    """Names of a certificate that are verified; of a wildcard that is not, the verified names of one label more."""
    names = set()
    for name in hostnames:
        if name in verified or not verified.isdisjoint(wildcards_over(name)):
            names.add(name)
        elif name.startswith("*."):
            names |= {each for each in verified if each.partition(".")[2] == name[2:] and not is_wildcard(each)}
    return names


def _is_free(name: str, candidate: _Candidate, owners: Mapping[str, int]) -> bool:
    """Whether an operator's choice lets the certificate answer for a name: nobody else verified it, or it is ours."""
    owner = next((owners[each] for each in (name, *wildcards_over(name)) if each in owners), candidate.account)
    return candidate.is_operators or owner == candidate.account


def _let_the_newest_answer(found: Iterable[_Candidate]) -> None:
    newest: dict[tuple[int, str], _Candidate] = {}
    for each in sorted(found, key=lambda candidate: candidate.began):
        if not each.is_operators:
            newest.update({(each.account, name): each for name in each.names})
    for each in found:
        others = {name for name in each.names if newest.get((each.account, name), each) is not each}
        kept = {name for name in others if each.chosen_by and newest[each.account, name].chosen_by}
        each.names -= others - kept


def _leave_to_owners(found: Iterable[_Candidate], accounts: Mapping[int, set[int]]) -> None:
    for each in found:
        if each.is_operators and each.chosen_by:
            present = set.intersection(*(accounts[balancer] for balancer in each.chosen_by))
            each.names -= {name for other in found if other.account in present for name in other.names}
