"""PUSH to clouds: a stack's definitions become a plan, somebody lets it happen, exactly it is applied."""
