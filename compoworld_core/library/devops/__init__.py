"""Building and running software."""
