resource "spillway_zone" "example" {
  account = "operator"
  name    = "example"
  spec    = { domain = "example.net", driver = "memory" }
}

resource "spillway_record" "www" {
  account = "operator"
  name    = "www"
  spec = {
    zone   = spillway_zone.example.name
    label  = "www"
    type   = "A"
    values = ["192.0.2.80", "192.0.2.81"]
  }
}
