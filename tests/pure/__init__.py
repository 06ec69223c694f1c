"""Tests of pure code: no database, no process, no network."""
