"""Running a service: entities, copy-on-write tables, tools, packages, the sandboxed host, the universe."""
