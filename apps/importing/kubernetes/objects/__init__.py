"""What stands beside routes: Services and their servers, Secrets, ConfigMaps, grants."""
