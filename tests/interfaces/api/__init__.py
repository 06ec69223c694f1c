"""The JSON API as its callers meet it: views, middleware and URLs."""
