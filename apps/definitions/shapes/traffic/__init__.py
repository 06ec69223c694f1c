"""What clients ask for and who answers: load balancers, routes, pools, certificates, zones, records."""
