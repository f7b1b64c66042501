"""Verbs of the command line that are long enough for a file of their own."""
