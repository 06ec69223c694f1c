"""Hands at a console: every click and every key counts, and only what the page shows can be reached."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from playwright.sync_api import Locator, Page, expect

# The palette asks anew a moment after the last letter; people wait for it, too.
LOOKS_AGAIN_MS = 500


class Way(StrEnum):
    """How somebody works: with the mouse alone, with Enter where something was typed, or without a mouse."""

    MOUSE = "mouse"
    ENTER = "enter"
    KEYS = "keys"


@dataclass
class Hands:
    """Those of one person at a page; nobody types an address."""

    page: Page
    way: Way = Way.MOUSE
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

    def find(self, words: str, line: str, told: str = "") -> None:
        """By the palette: words, then what a form would have to be told; the line, or Enter on the first line."""
        if self.way is Way.KEYS:
            self.press("Control+k")
            self.write(words)
        else:
            self.click(self.page.locator("[data-open=palette]"))
            self.page.keyboard.type(words)
        self.fields += self.way is not Way.KEYS or bool(told)
        self.page.keyboard.type(told)
        found = self.page.locator("#palette-results").get_by_text(line).first
        expect(found).to_be_visible()
        self.page.wait_for_timeout(LOOKS_AGAIN_MS)
        if self.way is Way.MOUSE:
            self.click(found)
        else:
            expect(self.page.locator("#palette-results .chosen").first).to_contain_text(line)
            self.press("Enter")

    def send(self, label: str, *, inside: str = "") -> None:
        """What was typed: by the button of its form, or by Enter in the last field."""
        if self.way is Way.MOUSE:
            self.button(label, inside=inside)
        else:
            self.press("Enter")

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
