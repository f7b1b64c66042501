"""The stage graph and the runner that executes it."""
