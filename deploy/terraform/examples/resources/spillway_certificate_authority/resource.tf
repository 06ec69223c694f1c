resource "spillway_certificate_authority" "lets_encrypt" {
  name = "lets-encrypt"
  spec = {
    directory_url = "https://acme-v02.api.letsencrypt.org/directory"
    terms_agreed  = true
    contacts      = ["ops@example.com"]
  }
}
