resource "spillway_account" "acme" {
  name = "acme"
  spec = { title = "Acme", quotas = { routes = 200, pools = 20 } }
}
