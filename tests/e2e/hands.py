"""Hands at a console: every click and every key counts, and only what the page shows can be reached."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator, Page


@dataclass
class Hands:
    """Those of one person at a page; nobody types an address."""

    page: Page
    clicks: int = 0
    keys: int = 0
    fields: int = 0

    def click(self, what: Locator) -> None:
        """One click."""
        what.click()
        self.clicks += 1

    def link(self, name: str, *, inside: str = "") -> None:
        """Click a link by its whole name."""
        self.click(self._in(inside).get_by_role("link", name=name, exact=True).first)

    def button(self, name: str, *, inside: str = "", exact: bool = True) -> None:
        """Click a button by its whole name, or by a part of it."""
        self.click(self._in(inside).get_by_role("button", name=name, exact=exact).first)

    def fill(self, label: str, text: str, *, inside: str = "") -> None:
        """Type into a field, which is one field more and no click: Tab leads there as well."""
        self._in(inside).get_by_label(label, exact=True).first.fill(text)
        self.fields += 1

    def choose(self, label: str, text: str) -> None:
        """Choose from a list by its label."""
        self.page.get_by_label(label, exact=True).first.select_option(text)
        self.fields += 1

    def press(self, *keys: str) -> None:
        """Keys, one after the other; two are one where they are pressed together."""
        for key in keys:
            self.page.keyboard.press(key)
            self.keys += 1

    def write(self, text: str) -> None:
        """Type words where the focus is."""
        self.page.keyboard.type(text)
        self.keys += len(text)

    def _in(self, inside: str) -> Page | Locator:
        return self.page.locator(inside).first if inside else self.page
