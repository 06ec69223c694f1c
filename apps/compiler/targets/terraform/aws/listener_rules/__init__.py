"""COMPILE for AWS: the rules of listeners: conditions, priorities and shares."""
