"""Which module knows what a cloud cannot do and which one writes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from apps.compiler.model.shared import Certificate, Listener, LoadBalancer, Route, Server
from apps.compiler.model.stack import Cloud, CloudPool, StackSnapshot
from apps.compiler.portability.incompatibilities import Incompatibility
from apps.compiler.targets.terraform.aws import capabilities as aws
from apps.compiler.targets.terraform.aws.render import render as render_aws
from apps.compiler.targets.terraform.document import StackDocument
from apps.compiler.targets.terraform.google import capabilities as google
from apps.compiler.targets.terraform.google.render import render as render_google


class Capabilities(Protocol):
    """The module `capabilities.py` of a target; each function says what the target cannot do for one object."""

    def unsupported_in_route(self, route: Route, load_balancer: LoadBalancer, /) -> Iterator[Incompatibility]: ...

    def unsupported_in_certificate(self, certificate: Certificate, /) -> Iterator[Incompatibility]: ...

    def unsupported_in_listener(
        self, listener: Listener, load_balancer: LoadBalancer, /
    ) -> Iterator[Incompatibility]: ...

    def unsupported_in_load_balancer(self, load_balancer: LoadBalancer, /) -> Iterator[Incompatibility]: ...

    def unsupported_in_server(self, server: Server, /) -> Iterator[Incompatibility]: ...

    def unsupported_in_pool(self, pool: CloudPool, /) -> Iterator[Incompatibility]: ...

    def unsupported_in_stack(self, snapshot: StackSnapshot, /) -> Iterator[Incompatibility]: ...


CAPABILITIES: Mapping[Cloud, Capabilities] = {Cloud.AWS: aws, Cloud.GOOGLE: google}
RENDERERS: Mapping[Cloud, Callable[[StackSnapshot], StackDocument]] = {
    Cloud.AWS: render_aws,
    Cloud.GOOGLE: render_google,
}
