resource "spillway_cloud_account" "prod" {
  name = "prod"
  spec = { cloud = "aws", credentials = "env:PROD" }
}
