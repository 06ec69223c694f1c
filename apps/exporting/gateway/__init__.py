"""A load balancer as manifests of the Gateway API; pure, the other way of importing/kubernetes/gateway."""
