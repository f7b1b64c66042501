"""Keeping and querying data."""
