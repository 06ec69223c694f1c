"""The text of haproxy.cfg: words, sections, and what each keyword is."""
