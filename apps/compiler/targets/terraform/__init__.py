"""COMPILE for Terraform: a stack's snapshot becomes plain resources; one package for each cloud."""
