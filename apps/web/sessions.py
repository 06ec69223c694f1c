"""SHOW to people: signing in and out, with a limit on failed tries."""

from __future__ import annotations

from django.contrib.auth import views
from django.urls import reverse_lazy

sign_in = views.LoginView.as_view(template_name="pages/account/sign_in.html", redirect_authenticated_user=True)
sign_out = views.LogoutView.as_view(next_page=reverse_lazy("web:sign-in"))
