"""PUSH to clouds: Terraform behind a contract, and the subprocess that synthesizes."""
