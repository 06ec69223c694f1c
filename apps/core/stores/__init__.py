"""The stores that every process needs: where they are by their URLs, and connections to them."""
