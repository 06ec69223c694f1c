"""The filter for sentences with `code` in them, as hints, errors and remedies are written."""

from __future__ import annotations

import re
from typing import Any

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString

register = template.Library()
_CODE = re.compile(r"`([^`\n]+)`")


@register.filter
def marked(text: Any) -> SafeString:
    """The sentence with what stands between backticks as code; all of it is escaped first."""
    return SafeString(_CODE.sub(r"<code>\1</code>", conditional_escape(text)))
