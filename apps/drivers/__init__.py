"""PUSH + OBSERVE, the hands: drivers touch the world and know nothing of Django."""
