"""Tests of services and selectors against a real database."""
