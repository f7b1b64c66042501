"""Hand-written reference services, found by `registry`; a large one is several files side by side."""
