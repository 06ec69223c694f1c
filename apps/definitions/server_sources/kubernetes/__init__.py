"""Services of Kubernetes as sources: how a cluster is asked, and what its EndpointSlices say."""
