"""SHOW to people: what every page is made of: answering, saving, faults beside fields, charts, figures."""
