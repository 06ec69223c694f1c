"""PUSH to clouds, the memory: Terraform's state, its lock, its passwords, and revisions."""
