"""SHOW to operators, kept: one sealed file with everything that a console needs to go on."""
