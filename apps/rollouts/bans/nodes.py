"""Asks many nodes at once who is banned, or to ban somebody no more; who does not answer in time is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from apps.core.clock import now
from apps.drivers.proxy.contract import ProxyDriver, ProxyError
from apps.drivers.proxy.registry import open_driver
from apps.fleet.models import Node
from apps.observe.collect.readings import addresses_of, target_of
from apps.rollouts.push.due import OLD_REPORT

T = TypeVar("T")
AT_ONCE = 32
PATIENCE_S = 8.0


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """By the names of nodes; `silent` are those that did not answer."""

    found: dict[str, T]
    silent: tuple[str, ...]


def ask(nodes: Iterable[Node], question: Callable[[ProxyDriver], T]) -> Answers[T]:
    """What each node answers. Who has not reported for a while is not asked: it would only be waited for."""
    rows = list(nodes)
    if not rows:
        return Answers({}, ())
    lately = now() - OLD_REPORT
    reported = set(
        Node.objects.filter(pk__in=[node.pk for node in rows], report__seen_at__gte=lately).values_list("pk", flat=True)
    )
    targets = {address.name: target_of(address) for address in addresses_of(n for n in rows if n.pk in reported)}
    threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="bans")
    asked: dict[str, Future[T]] = {
        name: threads.submit(lambda target=target: question(open_driver(target)))  # type: ignore[misc]
        for name, target in targets.items()
    }
    done, _ = wait(asked.values(), timeout=PATIENCE_S)
    threads.shutdown(wait=False, cancel_futures=True)
    found = {name: each.result() for name, each in asked.items() if each in done and _answered(each)}
    return Answers(found, tuple(sorted(node.name for node in rows if node.name not in found)))


def _answered(asked: Future[T]) -> bool:
    error = asked.exception()
    if error is not None and not isinstance(error, ProxyError):
        raise error
    return error is None
