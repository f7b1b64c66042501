"""People at work."""
