"""A load balancer on AWS or Google as a folder that runs by Terraform alone, with its part of the stack's state."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from apps.compiler.compile import compile_stack
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.model.stack import Cloud, StackSnapshot
from apps.compiler.portability.incompatibilities import Named
from apps.compiler.targets.terraform.pem import secrets_of
from apps.definitions.freezing.stack_snapshot import snapshot_of_stack
from apps.drivers.infra.contract import InfraError
from apps.drivers.infra.synthesis import synthesized
from apps.exporting.contract import Export, NotExportable, NotSaid
from apps.fleet.models import Stack
from apps.stacks.state import storage

MAIN, VALUES, STATE = "main.tf.json", "terraform.tfvars.json", "terraform.tfstate"
NO_BACKEND = "http://127.0.0.1/"  # the synthesis wants one, which is taken out again
ZONES = "DNS zones and their records stay with their stack:"
SHARED = "Other load balancers of the stack use these as well, so destroy none of them here:"
OTHERS = "Load balancers of the same stack are exported by themselves:"


def terraform(stack: Stack, load_balancer_id: str) -> Export:
    """What the stack emits for one load balancer. Raises NotExportable, CompileError, Unsealable."""
    whole = snapshot_of_stack(stack)
    compilation = compile_stack(_alone(whole, load_balancer_id))
    document = compilation.output
    try:
        made: dict[str, Any] = json.loads(synthesized(document.as_json(), NO_BACKEND))
    except InfraError as error:
        raise NotExportable(str(error)) from error
    made["terraform"].pop("backend", None)
    files = {MAIN: _text(made)}
    secrets = secrets_of(whole.certificates, document.variables)
    files |= {VALUES: _text(secrets)} if secrets else {}
    addresses = {f"{kind}.{name}" for kind, named in document.resources.items() for name in named}
    files |= _state(stack, addresses)
    said = [NotSaid(f"{each.message.rstrip('.')}:", (each.label,)) for each in compilation.left_out]
    others = [each for each in whole.load_balancers if each.id != load_balancer_id]
    for why, rows in ((ZONES, whole.zones), (OTHERS, others), (SHARED, _shared(whole, load_balancer_id))):
        labels = tuple(each.label for each in rows)
        said += [NotSaid(why, labels)] if labels else []
    return Export(files, frozenset({VALUES, STATE} & files.keys()), tuple(said))


def _alone(whole: StackSnapshot, load_balancer_id: str) -> StackSnapshot:
    """Pools that nothing leads to are not rendered, so only addresses and zones have to go."""
    fronts = tuple(each for each in whole.load_balancers if each.id == load_balancer_id)
    named = {key for each in fronts for key in _named(each)}
    return replace(
        whole,
        load_balancers=fronts,
        pools=tuple(each for each in whole.pools if each.id in named),
        certificates=tuple(each for each in whole.certificates if each.id in named),
        addresses=tuple(each for each in whole.addresses if each.load_balancer_id == load_balancer_id),
        zones=(),
    )


def _shared(whole: StackSnapshot, load_balancer_id: str) -> list[Named]:
    """What stands in the cloud once for several load balancers; at AWS, each has its own target groups of a pool."""
    own = {key for each in whole.load_balancers if each.id == load_balancer_id for key in _named(each)}
    theirs = {key for each in whole.load_balancers if each.id != load_balancer_id for key in _named(each)}
    standing: list[Named] = [*whole.certificates, *(whole.pools if whole.cloud is Cloud.GOOGLE else ())]
    return [each for each in standing if each.id in own & theirs]


def _named(front: LoadBalancer) -> Iterator[str]:
    """Ids of the pools and certificates that it uses."""
    for route in front.routes:
        yield from (share.pool_id for share in route.pools)
        if route.mirror_pool_id is not None:
            yield route.mirror_pool_id
    for listener in front.listeners:
        yield from (*listener.pool_ids, *listener.certificate_ids)


def _state(stack: Stack, addresses: Collection[str]) -> dict[str, bytes]:
    """What the cloud has already of it, so that the first plan makes nothing anew; private keys may be in it."""
    stored = storage.read(stack.pk)
    if stored is None:
        return {}
    state = json.loads(stored.content)
    kept = [each for each in state.get("resources", ()) if f"{each['type']}.{each['name']}" in addresses]
    return {STATE: _text({**state, "outputs": {}, "resources": kept})} if kept else {}


def _text(data: object) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
