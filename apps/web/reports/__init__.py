"""SHOW to managers: what an account's pools served in a month, measured and unknown, on paper as well."""
