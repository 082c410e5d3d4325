"""What `public_stub` writes stubs with."""
