"""Services in which people write to each other."""
