"""What a browser would send of a form that nobody has touched."""

from __future__ import annotations

import html
import re


def untouched(form: str) -> dict[str, str]:
    """Name → value of the fields of a form's HTML; a checkbox or a radio button counts when it is checked."""
    form = re.sub(r"<template>.*?</template>", "", form, flags=re.DOTALL)
    found = {}
    for tag in re.findall(r"<input [^>]*>", form):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        is_choice = 'type="checkbox"' in tag or 'type="radio"' in tag
        if name and (not is_choice or " checked" in tag):
            found[name[1]] = html.unescape(value[1]) if value else ""
    for name, text in re.findall(r'<textarea [^>]*name="([^"]*)"[^>]*>\n?(.*?)</textarea>', form, flags=re.DOTALL):
        found[name] = html.unescape(text)
    for name, options in re.findall(r'<select [^>]*name="([^"]*)".*?>(.*?)</select>', form, flags=re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        found[name] = chosen[1] if chosen else ""
    return found
