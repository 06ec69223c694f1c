"""OBSERVE: the process that fetches request lines from nodes, gives them names and stores them."""
