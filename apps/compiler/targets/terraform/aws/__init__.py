"""COMPILE for AWS: Application and Network Load Balancers, their rules, groups, addresses and zones."""
