"""COMPILE, lines of a pool's backend about the way to its servers."""
