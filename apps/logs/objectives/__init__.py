"""Objectives: routes are counted in request lines; how routes and pools stand."""
