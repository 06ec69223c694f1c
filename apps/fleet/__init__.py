"""Where traffic is handled: regions, their fleets and nodes, static IPs."""
