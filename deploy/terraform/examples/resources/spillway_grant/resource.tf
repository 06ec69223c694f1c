resource "spillway_account" "acme" {
  name = "acme"
  spec = { title = "Acme" }
}

resource "spillway_grant" "acme" {
  name = "for-acme"
  spec = { account = spillway_account.acme.name, hostname = "*.acme.example.com" }
}
