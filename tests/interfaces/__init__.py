"""Tests of the API and the pages as their users see them."""
