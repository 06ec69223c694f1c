"""DEFINE: what shapes are made of, and what is derived of them for everybody who reads or shows an object.

`shape.py` and `words.py` are what a declaration says, `fields.py` what it says when asked; `reading.py` makes a
specification of a document, `writing.py` a document of a specification or a row, `pages.py` the page of reference.
"""
