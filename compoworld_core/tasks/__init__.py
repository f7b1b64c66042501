"""Tasks: walks, plans, rubrics, and the gates that every task passes."""
