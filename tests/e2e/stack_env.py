"""Stacks with everything real: the state over HTTP, workers as processes, Terraform, and AWS as moto plays it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings

from apps.accounts.actors import Actor
from apps.stacks import services
from apps.stacks.models import StackRun, StackSync
from tests.conformance.aws_env import AwsEnv, empty_aws
from tests.database_url import database_url
from tests.terraform_providers import provides

ROOT = Path(__file__).resolve().parents[2]
TERRAFORM = shutil.which(os.environ.get("TERRAFORM_BIN", "terraform"))
NO_TERRAFORM = "NOT TESTED: there is no terraform here; install it, or name another in TERRAFORM_BIN"
NO_PROVIDER = "NOT TESTED: no mirror holds hashicorp/aws; say where one is in TF_PLUGIN_MIRROR"
HAS_PROVIDER = provides("hashicorp/aws")
# What tests of AWS need: the real Terraform and the real provider.
NEEDS_AWS = (
    pytest.mark.skipif(TERRAFORM is None, reason=NO_TERRAFORM),
    pytest.mark.skipif(not HAS_PROVIDER, reason=NO_PROVIDER),
)
REGION = "eu-central-1"
KEYS = {"SPILLWAY_CLOUD_MOTO_ACCESS_KEY_ID": "testing", "SPILLWAY_CLOUD_MOTO_SECRET_ACCESS_KEY": "testing-secret"}
LONGEST_S = 240.0
# Terraform and the provider hold a description of all of AWS: with memory to spare they need not sort it out so often.
RELAXED = """#!/bin/sh
GOGC=400 exec {0} "$@"
"""


@dataclass(frozen=True)
class Cloud(AwsEnv):
    """AWS as moto plays it, with a network to build in, and what Terraform made of it."""

    def standing(self) -> dict[str, list[str]]:
        """Everything of ours that stands there, by kind."""
        balancing, ec2, dns = self.client("elbv2"), self.client("ec2"), self.client("route53")
        balancers = balancing.describe_load_balancers()["LoadBalancers"]
        listeners = [
            each["ListenerArn"]
            for one in balancers
            for each in balancing.describe_listeners(LoadBalancerArn=one["LoadBalancerArn"])["Listeners"]
        ]
        rules = [
            f"{arn} {rule['Priority']}"
            for arn in listeners
            for page in balancing.get_paginator("describe_rules").paginate(ListenerArn=arn)
            for rule in page["Rules"]
            if not rule["IsDefault"]
        ]
        groups = [each["TargetGroupName"] for each in balancing.describe_target_groups()["TargetGroups"]]
        security = [each["GroupName"] for each in ec2.describe_security_groups()["SecurityGroups"]]
        zones = [each["Name"] for each in dns.list_hosted_zones()["HostedZones"]]
        return {
            "load balancers": sorted(each["LoadBalancerName"] for each in balancers),
            "listeners": sorted(listeners),
            "rules": sorted(rules),
            "target groups": sorted(groups),
            "addresses": sorted(each["AllocationId"] for each in ec2.describe_addresses()["Addresses"]),
            "security groups": sorted(name for name in security if name.startswith("sw-")),
            "zones": sorted(zones),
        }

    def count(self) -> dict[str, int]:
        """How many of each kind."""
        return {kind: len(found) for kind, found in self.standing().items() if found}


def cloud() -> Cloud:
    """An empty cloud with a VPC and two subnets in different zones."""
    aws = empty_aws()
    return Cloud(aws.endpoint, aws.vpc, aws.subnets)


@dataclass
class StackEnv:
    """A state backend over HTTP, and workers that may be killed; `endpoint` is where they may show their keys.

    `grace_s` is how long a silent lock is waited for.
    """

    actor: Actor
    directory: Path
    state_url: str
    lease_s: float = 15.0
    endpoint: str = ""
    grace_s: float = 60.0

    def environment(self) -> dict[str, str]:
        """What a worker gets: this test's database, and where its state is."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        return inherited | {
            **KEYS,
            "SPILLWAY_CLOUD_MOTO_ENDPOINT": self.endpoint,
            "SPILLWAY_DATABASE_URL": database_url(),
            "SPILLWAY_VAR": str(self.directory),
            "SPILLWAY_REDIS_URL": settings.REDIS_URL,
            "SPILLWAY_STATE_URL": self.state_url,
            "SPILLWAY_STACK_COALESCE_S": "0",
            "SPILLWAY_STACK_LEASE_S": str(self.lease_s),
            "SPILLWAY_STACK_LOCK_GRACE_S": str(self.grace_s),
            "SPILLWAY_LOG_LEVEL": "WARNING",
            "TERRAFORM_BIN": self._terraform(),
            "PYTHONPATH": str(ROOT),
        }

    def _terraform(self) -> str:
        relaxed = self.directory / "terraform-relaxed"
        relaxed.write_text(RELAXED.format(TERRAFORM or "terraform"))
        relaxed.chmod(0o700)
        return str(relaxed)

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """A worker as a process; killed at the end, with whatever it left told to nobody."""
        log = self.directory / "worker.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.stack_worker"],
                env=self.environment(),
                cwd=ROOT,
                stdout=out,
                stderr=out,
            )
            try:
                yield process
            finally:
                kill(process)

    def wait(self, what: str, done: Callable[[], bool], longest_s: float = LONGEST_S) -> None:
        """Until it is so; says what it waited for, and what the worker said, when it never was."""
        deadline = time.monotonic() + longest_s
        while not done():
            if time.monotonic() > deadline:
                said = (self.directory / "worker.log").read_text()[-3000:]
                last = StackRun.objects.order_by("-id").values("state", "message", "attempts").first()
                raise AssertionError(f"waited in vain for {what}; the last run: {last}; {said}")
            time.sleep(0.1)

    def settled(self) -> bool:
        """Nothing is left to do, for a worker or a person."""
        busy = StackRun.objects.filter(finished_at=None).exists()
        claimed = StackSync.objects.exclude(claimed_until=None).exists()
        return not busy and not claimed and not services.stacks_to_sweep()

    def approve(self) -> StackRun:
        """Wait for a plan, say yes, wait for the end."""
        self.wait("a plan", lambda: StackRun.objects.filter(state="planned").exists())
        run = StackRun.objects.get(state="planned")
        services.approve(actor=self.actor, run_id=run.pk, plan_digest=run.plan_digest)
        self.wait("the end", self.settled)
        run.refresh_from_db()
        return run

    def discard(self) -> StackRun:
        """Say no to the plan that waits."""
        run = StackRun.objects.get(state="planned")
        return services.discard(actor=self.actor, run_id=run.pk)


def kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
