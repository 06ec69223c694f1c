"""SHOW: stored numbers as pages, the API and metrics read them."""
