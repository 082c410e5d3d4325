"""The writers that `public_stub` uses."""
