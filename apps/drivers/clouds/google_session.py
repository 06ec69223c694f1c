"""The session: credentials by reference, clients of one project, errors in words.

Google's libraries are imported where they are used and never by importing this module: `google.cloud.compute_v1` alone
costs 1.4 s of processor time and 100 MB. Whoever reads Google pays it once, nobody else ever.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from apps.drivers.clouds.contract import CloudAccess, CloudError, endpoints_of
from apps.drivers.infra import credentials as references
from apps.drivers.infra.contract import InfraError

TIMEOUT_S = 10.0
SCOPES = ("https://www.googleapis.com/auth/compute.readonly", "https://www.googleapis.com/auth/monitoring.read")
COMPUTE = "https://compute.googleapis.com"
MONITORING = "https://monitoring.googleapis.com"


class GoogleSession:
    """Clients of one project; `endpoint_url` replaces both of Google's endpoints."""

    def __init__(self, access: CloudAccess) -> None:
        if not access.project:
            raise CloudError("Set the Google project of the cloud account.")
        self.access = access
        self._clients: dict[str, Any] = {}

    def client(self, name: str) -> Any:
        """A client of google-cloud-compute by its class's name, such as `UrlMapsClient`, over REST."""
        from google.api_core.client_options import ClientOptions
        from google.cloud import compute_v1

        if name not in self._clients:
            endpoint = self.access.endpoint_url or COMPUTE
            options = ClientOptions(api_endpoint=endpoint.rstrip("/"))
            self._clients[name] = getattr(compute_v1, name)(credentials=self._credentials, client_options=options)
        return self._clients[name]

    def get_json(self, path: str, query: list[tuple[str, str]]) -> dict[str, Any]:
        """An answer of the monitoring API, which its own client gives by gRPC alone; a fork does not survive that."""
        address = (self.access.endpoint_url or MONITORING).rstrip("/") + path
        answer = self._http.get(address, params=query, timeout=TIMEOUT_S, allow_redirects=False)
        if answer.status_code >= 300:
            raise CloudError(f"Google's monitoring answered {answer.status_code}: {_reason(answer)}")
        found: dict[str, Any] = answer.json()
        return found

    @cached_property
    def _http(self) -> Any:
        from google.auth.transport.requests import AuthorizedSession

        session: Any = AuthorizedSession
        return session(self._credentials)

    @cached_property
    def _credentials(self) -> Any:
        return credentials_of(self.access)


def credentials_of(access: CloudAccess) -> Any:
    """What the reference stands for, as Terraform's provider would find it. Raises CloudError without any secret.

    A role is a service account that the process's own identity takes on. An endpoint that the environment does not
    name is asked as nobody where the definition refers to nothing, and not at all where it does.
    """
    from google.auth import credentials, default, impersonated_credentials

    try:
        found = references.environment(access.credentials, ["google"], endpoints_of(access), os.environ)
    except InfraError as error:
        if not access.credentials:
            nobody: Any = credentials.AnonymousCredentials
            return nobody()
        raise CloudError(error.message) from None
    if access.credentials.startswith("env:"):
        return _of_key(found["GOOGLE_CREDENTIALS"])
    own, _project = default(scopes=SCOPES)
    role = references.role_of(access.credentials)
    taken_on: Any = impersonated_credentials.Credentials
    return taken_on(own, target_principal=role, target_scopes=list(SCOPES)) if role else own


def _of_key(text: str) -> Any:
    """A service account's key, as JSON or as the path of a file."""
    from google.oauth2 import service_account

    account: Any = service_account.Credentials
    try:
        if text.lstrip().startswith("{"):
            return account.from_service_account_info(json.loads(text), scopes=SCOPES)
        return account.from_service_account_file(text, scopes=SCOPES)
    except (ValueError, OSError, KeyError):
        # What went wrong may quote the key.
        raise CloudError("The credentials of the cloud account are not a service account key.") from None


@contextmanager
def in_words(access: CloudAccess) -> Iterator[None]:
    """Whatever Google's libraries raise becomes a CloudError."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError
    from google.protobuf import json_format

    host = urlsplit(access.endpoint_url or COMPUTE).netloc
    try:
        yield
    except GoogleAPICallError as error:
        raise CloudError(f"Google answered {error.code}: {str(error.message)[:300]}") from error
    except GoogleAuthError as error:
        kind = access.credentials.partition(":")[0] or "own"
        raise CloudError(f"Google rejects credentials of kind {kind} here, or they have expired.") from error
    except (ValueError, json_format.Error) as error:
        raise CloudError(f"What {host} answered cannot be read.") from error
    except (requests.RequestException, RetryError) as error:
        raise CloudError(f"Google could not be reached at {host}: {type(error).__name__}.") from error


def _reason(answer: Any) -> str:
    try:
        return str(answer.json()["error"]["message"])[:300]
    except (ValueError, KeyError, TypeError):
        return "no reason given"
