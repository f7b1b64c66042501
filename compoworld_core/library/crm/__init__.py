"""Customer relations."""
