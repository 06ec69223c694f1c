"""Manifests of Kubernetes as definitions of ours: Ingress with its annotations, and the Gateway API."""
