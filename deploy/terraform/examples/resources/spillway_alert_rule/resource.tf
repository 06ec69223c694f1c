resource "spillway_alert_rule" "slow_shop" {
  account = "operator"
  name    = "slow-shop"
  spec    = { watches = "pool_slow", only = ["shop*"], threshold = 300 }
}
