variable "webhook_secret" {
  type      = string
  sensitive = true
}

resource "spillway_alert_channel" "team" {
  account = "operator"
  name    = "team"
  spec    = { type = "webhook", url = "https://hooks.example.com/in", secret = var.webhook_secret }
}
