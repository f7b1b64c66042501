"""The chart, and what is made for it and from it; see `charts.sync`."""
