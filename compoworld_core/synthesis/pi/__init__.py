"""The pi author: a coding agent writes a service from its spec, and another one, from the same spec, its challenges."""
