"""Every page links to the document that explains it, where documents can be reached."""

from __future__ import annotations

from django.test import override_settings

from tests.conftest import actor_of
from tests.interfaces.people import client_of


@override_settings(DOCS_URL="https://docs.example/")
def test_a_page_links_to_the_document_about_it(db: None) -> None:
    page = client_of(actor_of("operator", "operator")).get("/pools").content.decode()
    assert 'href="https://docs.example/use/traffic/#pools-and-health-checks"' in page


@override_settings(DOCS_URL="")
def test_no_help_is_offered_where_no_documents_are(db: None) -> None:
    assert "Help for this page" not in client_of(actor_of("operator", "operator")).get("/pools").content.decode()
