"""OBSERVE: request lines go on to the log systems that accounts have."""
