resource "spillway_region" "eu" {
  name = "eu"
  spec = { title = "Europe" }
}

resource "spillway_cloud_account" "prod" {
  name = "prod"
  spec = { cloud = "aws", credentials = "env:PROD" }
}

resource "spillway_stack" "frankfurt" {
  name = "frankfurt"
  spec = {
    cloud_account = spillway_cloud_account.prod.name
    cloud_region  = "eu-central-1"
    region        = spillway_region.eu.name
  }
}
