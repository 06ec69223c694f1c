"""The Gateway API: listeners, and the routes that attach to them."""
