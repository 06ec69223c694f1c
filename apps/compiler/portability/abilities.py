"""COMPILE, which module knows what a cloud cannot do and which one writes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from apps.compiler.model.fleet import Certificate, Listener, LoadBalancer, Route, Server
from apps.compiler.model.stack import Cloud, CloudPool, StackSnapshot
from apps.compiler.portability.incompatibilities import Loss
from apps.compiler.targets.terraform.aws import abilities as aws
from apps.compiler.targets.terraform.aws.render import render as render_aws
from apps.compiler.targets.terraform.document import StackDocument
from apps.compiler.targets.terraform.google import abilities as google
from apps.compiler.targets.terraform.google.render import render as render_google


class Abilities(Protocol):
    """The module `abilities.py` of a target; each function says what the target cannot do for one object."""

    def losses_of_route(self, route: Route, load_balancer: LoadBalancer, /) -> Iterator[Loss]: ...

    def losses_of_certificate(self, certificate: Certificate, /) -> Iterator[Loss]: ...

    def losses_of_listener(self, listener: Listener, load_balancer: LoadBalancer, /) -> Iterator[Loss]: ...

    def losses_of_load_balancer(self, load_balancer: LoadBalancer, /) -> Iterator[Loss]: ...

    def losses_of_server(self, server: Server, /) -> Iterator[Loss]: ...

    def losses_of_pool(self, pool: CloudPool, /) -> Iterator[Loss]: ...

    def losses_of_stack(self, snapshot: StackSnapshot, /) -> Iterator[Loss]: ...


ABILITIES: Mapping[Cloud, Abilities] = {Cloud.AWS: aws, Cloud.GOOGLE: google}
RENDERERS: Mapping[Cloud, Callable[[StackSnapshot], StackDocument]] = {
    Cloud.AWS: render_aws,
    Cloud.GOOGLE: render_google,
}
