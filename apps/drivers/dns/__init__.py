"""PUSH + OBSERVE for DNS: name servers behind a contract."""
