"""Checked dispatches: what a kernel checks (engine/robust), what it recorded, and how one is stopped."""
