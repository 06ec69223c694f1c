resource "spillway_network_list" "office" {
  account = "operator"
  name    = "office"
  spec    = { entries = [{ network = "192.0.2.0/24", reason = "The office" }] }
}

resource "spillway_policy" "web" {
  account = "operator"
  name    = "web"
  spec = {
    rules = {
      security_headers = { no_sniff = true, frames = "deny" }
      access           = { deny = [spillway_network_list.office.name] }
      cors             = { origins = ["https://app.example.com"] }
    }
  }
}
