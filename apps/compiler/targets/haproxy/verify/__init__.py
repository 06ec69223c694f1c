"""CHECK: independent readers say what rendered files mean before anybody runs them."""
