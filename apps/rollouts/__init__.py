"""PUSH: revisions, rollouts and their steps, reconciliation of what a node runs with what it should run."""
