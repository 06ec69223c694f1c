resource "spillway_region" "eu" {
  name = "eu"
  spec = { title = "Europe" }
}

resource "spillway_fleet" "eu" {
  name = "eu"
  spec = { region = spillway_region.eu.name }
}
