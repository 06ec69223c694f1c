"""PUSH of DNS zones: what is wanted is compared with what is served, written, and looked at again."""
