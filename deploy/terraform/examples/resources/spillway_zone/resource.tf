resource "spillway_zone" "example" {
  account = "operator"
  name    = "example"
  spec    = { domain = "example.net", driver = "memory" }
}
