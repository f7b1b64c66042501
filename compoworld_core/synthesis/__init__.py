"""From spec to service: authors, and the admission that decides which tools agents may see."""
