resource "spillway_schedule" "nightly" {
  account = "operator"
  name    = "nightly"
  spec = {
    when   = { cron = "30 2 * * *" }
    zone   = "Europe/Berlin"
    target = { topic = { topic = "nightly", message = "Good night." } }
  }
}
