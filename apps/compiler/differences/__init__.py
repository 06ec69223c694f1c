"""What differs: between snapshots as sentences, between bundles as text, without secrets."""
