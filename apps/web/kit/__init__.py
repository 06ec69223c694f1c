"""SHOW to people: what every page is made of: answering, saving, errors beside fields, charts, figures."""
