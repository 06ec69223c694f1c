"""OBSERVE: the collector reads every agent and turns readings into rows."""
