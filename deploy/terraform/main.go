// Command terraform-provider-spillway lets Terraform manage what Spillway stores.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
)

const address = "registry.terraform.io/spillway/spillway"

// version is set when the provider is linked.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger")
	flag.Parse()
	options := providerserver.ServeOpts{Address: address, Debug: *debug}
	if err := providerserver.Serve(context.Background(), newProvider, options); err != nil {
		log.Fatal(err)
	}
}
