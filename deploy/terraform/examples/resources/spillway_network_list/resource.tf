resource "spillway_network_list" "office" {
  account = "operator"
  name    = "office"
  spec    = { entries = [{ network = "192.0.2.0/24", reason = "The office" }] }
}
