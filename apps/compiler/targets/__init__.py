"""COMPILE: one package per kind of target; each turns a snapshot into that target's files."""
