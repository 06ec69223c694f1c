"""CAPACITY: measures what a region, a server or a load balancer can take, and turns the number into a limit."""
