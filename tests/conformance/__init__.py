"""One suite for every driver: what holds for the honest fake must hold for the real node."""
