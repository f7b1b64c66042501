"""The planner: the embedded task author, which composes typed data-flow plans from ingredients, one file each."""
