"""CHECK, who may do what: one table of every URL, method and kind of caller, and foreign ids wherever one is read."""
