"""Tests on the real parts: HAProxy, Redis, Celery, Chromium."""
