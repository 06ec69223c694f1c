"""The way in: clients of boto3 by a reference to credentials, and errors in words.

boto3 is imported when the first reader is made: a process that asks no cloud does not pay for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from apps.drivers.clouds.contract import CloudAccess, CloudError, endpoints_of
from apps.drivers.infra import credentials
from apps.drivers.infra.contract import InfraError

if TYPE_CHECKING:
    from boto3.session import Session

CONNECT_S, READ_S, ATTEMPTS = 5, 10, 3
BRIEF_CONNECT_S, BRIEF_READ_S = 2, 4
ROLE_SESSION = "spillway-reads"


def client(access: CloudAccess, service: str) -> Any:
    """A client of one service in the account's region. Raises CloudError where the reference leads nowhere."""
    from botocore.config import Config

    config = Config(
        connect_timeout=BRIEF_CONNECT_S if access.brief else CONNECT_S,
        read_timeout=BRIEF_READ_S if access.brief else READ_S,
        retries={"mode": "standard", "total_max_attempts": 1 if access.brief else ATTEMPTS},
        user_agent_extra="spillway",
    )
    with in_words():
        options: dict[str, Any] = {"config": config, "endpoint_url": access.endpoint_url or None}
        session: Any = _session(access)  # the stubs know every service by a literal name
        return session.client(service, region_name=access.region, **options)


def _session(access: CloudAccess) -> Session:
    import boto3

    reference = access.credentials
    try:
        found = credentials.environment(reference, ["aws"], endpoints_of(access), os.environ)
    except InfraError as error:
        raise CloudError(error.message) from None
    if reference.startswith("profile:"):
        return boto3.Session(profile_name=found["AWS_PROFILE"])
    own = boto3.Session(
        aws_access_key_id=found.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=found.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=found.get("AWS_SESSION_TOKEN"),
    )
    role = credentials.role_of(reference)
    return _as_role(own, role, access) if role else own


def _as_role(own: Session, role: str, access: CloudAccess) -> Session:
    import boto3

    service: Any = own.client("sts", region_name=access.region, endpoint_url=access.endpoint_url or None)
    given = service.assume_role(RoleArn=role, RoleSessionName=ROLE_SESSION)["Credentials"]
    return boto3.Session(
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )


@contextmanager
def in_words() -> Iterator[None]:
    """Turn every error of boto3 into a CloudError that operators can read; it never holds a key."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except ClientError as error:
        said = error.response.get("Error", {})
        raise CloudError(f"AWS says {said.get('Code', 'no')}: {str(said.get('Message', ''))[:300]}") from None
    except ResponseParserError:
        raise CloudError("The response cannot be read; it is not from AWS.") from None
    except BotoCoreError as error:
        raise CloudError(f"AWS did not answer ({type(error).__name__}): {str(error)[:300]}") from None
