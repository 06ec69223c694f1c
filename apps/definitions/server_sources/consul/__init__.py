"""Services of Consul as sources: how their health is asked, and which servers it names."""
