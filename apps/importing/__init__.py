"""ADOPT files: configurations of other load balancers, as definitions of ours; nothing is written here."""
