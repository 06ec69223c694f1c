"""PUSH + OBSERVE, the proxy border: how the control plane reaches a HAProxy node."""
