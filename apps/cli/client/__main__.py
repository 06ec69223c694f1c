"""The same as the command, for `python -m spillway`."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
