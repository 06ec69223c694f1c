"""The table, third part: pages of signing in are anybody's, pages about oneself have no foreign id."""

from __future__ import annotations

from tests.permissions.rows import Codes, Open, Row, codes

MINE = codes(200, 200, 200)

# Where the person first has to prove again who they are, or has nothing of the kind.
ELSEWHERE = codes(302, 302, 302)
NOTHING = codes(404, 404, 404)
BOTH = ("GET", "POST")


def for_anybody(name: str, anonymous: int, signed_in: int, methods: tuple[str, ...] = BOTH, **path: str) -> list[Row]:
    """Rows of a page that needs no session."""
    return [Row(name, method, Open(anonymous, signed_in), path, by_viewers=True) for method in methods]


def mine(name: str, allowed: Codes, methods: tuple[str, ...] = BOTH, **path: str) -> list[Row]:
    """Rows of a page about oneself."""
    return [Row(name, method, allowed, path, by_viewers=True) for method in methods]


SIGN_IN: tuple[Row, ...] = (
    *for_anybody("web:sign-in", 200, 302),
    *for_anybody("web:sign-out", 302, 302, ("POST",)),
    *for_anybody("web:invitation", 404, 404, secret="x"),
    *for_anybody("account_login", 200, 302),
    *for_anybody("mfa_login_webauthn", 302, 302),
    *for_anybody("mfa_authenticate", 302, 302),
    *for_anybody("account_reset_password", 200, 200),
    *for_anybody("account_inactive", 200, 200, ("GET",)),
    *for_anybody("account_reset_password_done", 200, 200, ("GET",)),
    *for_anybody("account_reset_password_from_key_done", 200, 200, ("GET",)),
    *for_anybody("account_reset_password_from_key", 200, 200, uidb36="1", key="a-b"),
    *for_anybody("openid_connect_login", 404, 404, provider_id="sso"),
    *for_anybody("openid_connect_callback", 404, 404, provider_id="sso"),
    *for_anybody("socialaccount_login_cancelled", 302, 302),
    *mine("mfa_index", MINE, ("GET",)),
    *mine("usersessions_list", MINE),
    *mine("usersessions_end", ELSEWHERE, ("POST",)),
    *mine("account_reauthenticate", MINE),
    *mine("mfa_reauthenticate", ELSEWHERE),
    *mine("mfa_reauthenticate_webauthn", ELSEWHERE),
    *mine("account_change_password", MINE),
    *mine("account_set_password", ELSEWHERE),
    *mine("mfa_activate_totp", ELSEWHERE),
    *mine("mfa_deactivate_totp", NOTHING),
    *mine("mfa_view_recovery_codes", NOTHING, ("GET",)),
    *mine("mfa_generate_recovery_codes", ELSEWHERE),
    *mine("mfa_add_webauthn", ELSEWHERE),
    *mine("mfa_edit_webauthn", ELSEWHERE, pk="1"),
    *mine("mfa_remove_webauthn", ELSEWHERE, pk="1"),
    *mine("socialaccount_connections", MINE),
)
