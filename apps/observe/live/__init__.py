"""SHOW what moves: live numbers in Redis and the event stream."""
