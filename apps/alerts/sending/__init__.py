"""Messages on their way: each type of channel in its own words, tried again until it is taken."""
