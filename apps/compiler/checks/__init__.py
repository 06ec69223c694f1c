"""CHECK: what a whole snapshot must satisfy before a single file is written."""
