"""DEFINE, writes: each is one transaction of change, audit entry and intent (a higher desired generation)."""
