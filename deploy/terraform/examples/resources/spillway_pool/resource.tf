resource "spillway_region" "eu" {
  name = "eu"
  spec = { title = "Europe" }
}

resource "spillway_pool" "shop" {
  account = "operator"
  name    = "shop"
  spec = {
    health_check = { path = "/up" }
    backends = [{
      region  = spillway_region.eu.name
      servers = [{ name = "shop-1", address = "10.0.0.1", port = 8080 }]
    }]
  }
}
