// The server that tests/consul.py builds; go.sum has the hashes. A newer Consul needs modules that no proxy has.
module spillway/tests/consul

go 1.23

require (
	github.com/hashicorp/consul v1.10.0
	github.com/hashicorp/consul/api v1.9.1
	golang.org/x/sys v0.15.0
)
