"""A stack of the operator, documents of `terraform_data` for it, and runs that may touch its state."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.test import Client

from apps.accounts.actors import Actor
from apps.fleet.models import CloudAccount, Region, Stack
from apps.stacks.models import StackRevision, StackRun
from apps.stacks.state import passwords

LINEAGE = "6f0c1f4e-7f57-4c44-9d0a-3c8a1a0d7a01"


def a_stack(operator: Actor, name: str = "frankfurt", **columns: Any) -> Stack:
    """A stack in an AWS account; its cloud region is as its name, so that an account may have several."""
    cloud, _ = CloudAccount.objects.get_or_create(
        name="main", defaults={"account": operator.account, "cloud": "aws", "credentials": "env:CLOUD_KEY"}
    )
    defaults = {"account": operator.account, "title": "Frankfurt"}
    region, _ = Region.objects.get_or_create(name="eu-central-1", defaults=defaults)
    usual = {"account": operator.account, "cloud_account": cloud, "region": region, "cloud_region": name}
    return Stack.objects.create(name=name, **(usual | columns))


def data(*names: str, **inputs: Any) -> dict[str, Any]:
    """A document of `terraform_data`: those names with themselves as input, the others with what they are given."""
    wanted = dict.fromkeys(names, "") | inputs
    return {
        "providers": [],
        "resources": {"terraform_data": {name: {"input": value or name} for name, value in wanted.items()}}
        if wanted
        else {},
        "variables": [],
        "outputs": {f"{name}_value": f"${{terraform_data.{name}.output}}" for name in wanted},
        "owners": {f"terraform_data.{name}": name.replace("_", "-") for name in wanted},
    }


def a_run(stack: Stack, **columns: Any) -> tuple[StackRun, str]:
    """An open run of the stack that is being planned, and the password of its attempt."""
    number = stack.revisions.count() + 1
    revision = StackRevision.objects.create(
        stack=stack, number=number, generation=number, digest="0" * 64, document=b"", secrets=b"", actor="somebody"
    )
    usual: dict[str, Any] = {"state": StackRun.State.PLANNING, "actor": "somebody"}
    run = StackRun(stack=stack, revision=revision, **(usual | columns))
    run.save()
    password = passwords.mint(run)
    run.save()
    return run, password


def state_body(serial: int = 1, *, lineage: str = LINEAGE, resources: int = 1, **more: Any) -> bytes:
    """A state as Terraform writes it."""
    managed = [
        {"mode": "managed", "type": "terraform_data", "name": f"r{number}", "instances": [{"attributes": {}}]}
        for number in range(resources)
    ]
    body = {"version": 4, "serial": serial, "lineage": lineage, "resources": managed, "outputs": {}}
    return json.dumps(body | more).encode()


@dataclass(frozen=True)
class Terraform:
    """Speaks to the state backend as Terraform does."""

    stack_id: int
    run_id: int
    password: str

    def ask(self, method: str, body: bytes = b"", query: str = "", path: str = "", **headers: str) -> Any:
        """One request."""
        secret = base64.b64encode(f"run-{self.run_id}:{self.password}".encode()).decode()
        sent: Mapping[str, str] = {"Authorization": f"Basic {secret}", **headers}
        url = f"/state/{self.stack_id}{path}{query}"
        return Client(raise_request_exception=False).generic(method, url, body, "application/json", headers=sent)

    def lock(self, lock_id: str = "one", method: str = "LOCK") -> Any:
        """LOCK or UNLOCK with this id."""
        return self.ask(method, json.dumps({"ID": lock_id, "Operation": "OperationTypeApply", "Who": "me"}).encode())

    def write(self, body: bytes, lock_id: str = "one", **headers: str) -> Any:
        """POST with the lock's id and the MD5."""
        digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        return self.ask("POST", body, f"?ID={lock_id}" if lock_id else "", **({"Content-MD5": digest} | headers))
