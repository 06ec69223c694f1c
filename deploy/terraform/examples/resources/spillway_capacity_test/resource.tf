resource "spillway_region" "eu" {
  name = "eu"
  spec = { title = "Europe" }
}

resource "spillway_fleet" "eu" {
  name = "eu"
  spec = { region = spillway_region.eu.name }
}

resource "spillway_load_balancer" "front" {
  account = "operator"
  name    = "front"
  spec = {
    fleets    = [spillway_fleet.eu.name]
    listeners = [{ name = "web", protocol = "http", port = 80 }]
  }
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

resource "spillway_route" "shop" {
  account = "operator"
  name    = "shop"
  spec = {
    load_balancer = spillway_load_balancer.front.name
    hostname      = "shop.example.com"
    path          = "/"
    action        = { pools = [{ pool = spillway_pool.shop.name }] }
  }
}

resource "spillway_capacity_test" "shop" {
  account = "operator"
  name    = "shop"
  spec = {
    target = {
      pool     = spillway_pool.shop.name
      region   = spillway_region.eu.name
      hostname = spillway_route.shop.spec.hostname
    }
    load      = { kind = "search" }
    objective = { percentile = 95, max_latency_ms = 600 }
    guards    = { max_rate = 40, max_connections = 100, max_duration_s = 300 }
  }
}
