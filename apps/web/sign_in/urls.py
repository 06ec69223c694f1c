"""The steps of signing in and one's own account; allauth looks these names up without a namespace."""

from __future__ import annotations

from django.urls import path, re_path

from apps.web.sign_in import (
    openid as sign_in_openid,
)
from apps.web.sign_in import (
    sessions,
    your_account,
    your_sessions,
)
from apps.web.sign_in import (
    steps as sign_in_steps,
)

urlpatterns = [
    path("sign-in", sessions.sign_in, name="account_login"),
    path("sign-in/code", sign_in_steps.second_step, name="mfa_authenticate"),
    path("sign-in/passkey", sign_in_steps.passkey, name="mfa_login_webauthn"),
    path("sign-in/again", sign_in_steps.again, name="account_reauthenticate"),
    path("sign-in/again/code", sign_in_steps.again_by_code, name="mfa_reauthenticate"),
    path("sign-in/again/passkey", sign_in_steps.again_by_passkey, name="mfa_reauthenticate_webauthn"),
    path("sign-in/inactive", sign_in_steps.inactive, name="account_inactive"),
    path("sign-in/forgotten", sign_in_steps.forgotten, name="account_reset_password"),
    path("sign-in/forgotten/sent", sign_in_steps.forgotten_sent, name="account_reset_password_done"),
    path("sign-in/forgotten/done", sign_in_steps.new_password_done, name="account_reset_password_from_key_done"),
    re_path(
        r"^sign-in/forgotten/(?P<uidb36>[0-9A-Za-z]{1,13})-(?P<key>[0-9A-Za-z-]{1,80})$",
        sign_in_steps.new_password,
        name="account_reset_password_from_key",
    ),
    path("sign-in/with/<slug:provider_id>", sign_in_openid.go, name="openid_connect_login"),
    path("sign-in/with/<slug:provider_id>/back", sign_in_openid.come_back, name="openid_connect_callback"),
    path("sign-in/cancelled", sign_in_openid.cancelled, name="socialaccount_login_cancelled"),
    path("account/security", your_account.security, name="mfa_index"),
    path("account/security/password", your_account.password, name="account_change_password"),
    path("account/security/first-password", your_account.password_first, name="account_set_password"),
    path("account/security/app", your_account.app_add, name="mfa_activate_totp"),
    path("account/security/app/remove", your_account.app_remove, name="mfa_deactivate_totp"),
    path("account/security/recovery-codes", your_account.codes, name="mfa_view_recovery_codes"),
    path("account/security/recovery-codes/new", your_account.codes_new, name="mfa_generate_recovery_codes"),
    path("account/security/passkeys/new", your_account.passkey_add, name="mfa_add_webauthn"),
    path("account/security/passkeys/<int:pk>/rename", your_account.passkey_rename, name="mfa_edit_webauthn"),
    path("account/security/passkeys/<int:pk>/remove", your_account.passkey_remove, name="mfa_remove_webauthn"),
    path("account/security/providers/remove", your_account.connections, name="socialaccount_connections"),
    path("account/sessions", your_sessions.index, name="usersessions_list"),
    path("account/sessions/end", your_sessions.end, name="usersessions_end"),
]
