"""COMPILE for Google: global external Application Load Balancers and proxy Network Load Balancers."""
