resource "spillway_alert_rule" "pool_down" {
  account = "operator"
  name    = "shop-down"
  spec    = { watches = "pool_down" }
}

resource "spillway_status_page" "front" {
  account = "operator"
  name    = "front"
  spec    = { title = "Front", rules = [spillway_alert_rule.pool_down.name] }
}
