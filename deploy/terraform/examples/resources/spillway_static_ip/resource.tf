resource "spillway_static_ip" "front" {
  name = "front"
  spec = { address = "192.0.2.10" }
}
