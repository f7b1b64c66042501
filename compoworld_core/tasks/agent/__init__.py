"""The agent author: a language model explores a world, designs a task in it, tries it, and submits it to the gates."""
