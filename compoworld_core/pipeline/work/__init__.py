"""What each stage does: its config, how it is cut into shards, and the rows of a shard."""
