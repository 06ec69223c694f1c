"""Objects of Traefik's own kinds: IngressRoutes, and the Middlewares that they name."""
