"""OBSERVE clouds: health, numbers and existing load balancers, read through the clouds' own clients; never written."""
