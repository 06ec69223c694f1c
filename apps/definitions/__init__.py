"""DEFINE: load balancers, listeners, routes, pools, backends, servers, certificates, and the snapshot of them."""
