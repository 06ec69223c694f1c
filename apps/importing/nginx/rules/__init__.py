"""What directives of a location do with a request: conditions, rewrites, headers, access, limits, answers."""
