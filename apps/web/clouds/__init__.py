"""SHOW to people: cloud accounts, stacks and static IPs."""
