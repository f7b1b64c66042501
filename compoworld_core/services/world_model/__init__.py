"""Tools that no code executes: a model predicts what a call changes and answers, and the tables decide what is kept."""
