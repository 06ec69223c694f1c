"""OBSERVE: samples, conditions, the collector that reads every agent, and the Prometheus exporter."""
