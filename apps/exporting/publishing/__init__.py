"""Definitions of accounts as keys of an etcd, for programs that read them there."""
