"""Liveness, readiness and metrics."""

from django.urls import path

from apps.observe import views

urlpatterns = [
    path("healthz", views.healthz),
    path("readyz", views.readyz),
    path("metrics", views.metrics),
]
