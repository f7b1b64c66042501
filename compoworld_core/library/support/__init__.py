"""Customer support."""
