resource "spillway_region" "eu" {
  name = "eu"
  spec = { title = "Europe" }
}
