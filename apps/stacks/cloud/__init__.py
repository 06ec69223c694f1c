"""OBSERVE clouds: health, counts, weights of overflow, and what somebody else made there."""
