"""COMPILE, grammars of fields beside those of `grammar.py`."""
