"""The command `spillway-admin`: installs, checks, upgrades, saves and restores a console."""
