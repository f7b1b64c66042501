"""How good a model is: benchmarks, the held-out suite, and comparisons that say what may be compared."""
