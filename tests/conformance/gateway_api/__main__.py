"""`python -m tests.conformance.gateway_api` writes docs/reference/gateway-api.md."""

from __future__ import annotations

from tests.conformance.gateway_api.results import PAGE, page

PAGE.write_text(page())
