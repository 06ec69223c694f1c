"""PUSH on the node: static IPs by VRRP and BGP, and the watchdog that keeps them honest."""
