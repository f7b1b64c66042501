"""Language models behind chat-completion endpoints: what may be asked of them, at what price, and what was answered."""
