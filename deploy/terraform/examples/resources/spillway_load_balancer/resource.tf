resource "spillway_region" "eu" {
  name = "eu"
  spec = { title = "Europe" }
}

resource "spillway_fleet" "eu" {
  name = "eu"
  spec = { region = spillway_region.eu.name }
}

resource "spillway_load_balancer" "front" {
  account = "operator"
  name    = "front"
  spec = {
    fleets    = [spillway_fleet.eu.name]
    listeners = [{ name = "web", protocol = "http", port = 80 }]
  }
}
