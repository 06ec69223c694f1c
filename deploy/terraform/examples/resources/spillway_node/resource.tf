resource "spillway_region" "eu" {
  name = "eu"
  spec = { title = "Europe" }
}

resource "spillway_fleet" "eu" {
  name = "eu"
  spec = { region = spillway_region.eu.name }
}

resource "spillway_node" "eu_1" {
  name = "eu-1"
  spec = {
    fleet   = spillway_fleet.eu.name
    url     = "https://10.0.0.10:9443"
    address = "10.0.0.10"
    tags    = { rack = "a1" }
  }
}
