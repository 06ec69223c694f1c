"""The way in for nodes: tokens, certificates, their renewal, revocation, and the rotation of the authority."""
