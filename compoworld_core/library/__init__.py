"""Hand-written reference services, one file each, found by `registry`."""
