"""Keys of etcd as sources: how its cluster is asked, and what the keys say."""
