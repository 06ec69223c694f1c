"""DEFINE, questions before a change is made: what it would look like and what it would meet."""
