"""Loads, stores and the addresses that they use."""
