"""Episodes: policies act in worlds, verified successes become training data."""
