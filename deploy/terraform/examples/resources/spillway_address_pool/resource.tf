resource "spillway_address_pool" "public" {
  name = "public"
  spec = { blocks = ["192.0.2.0/28"] }
}
