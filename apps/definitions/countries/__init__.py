"""Countries: their networks by an operator's database, for lists that name them."""
