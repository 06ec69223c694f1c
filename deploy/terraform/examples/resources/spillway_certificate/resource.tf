resource "spillway_certificate" "shop" {
  account = "operator"
  name    = "shop"
  spec = {
    chain = file("${path.module}/shop.crt")
    key   = file("${path.module}/shop.key")
  }
}
