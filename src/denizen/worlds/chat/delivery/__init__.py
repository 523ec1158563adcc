"""How replies leave: the outbox, the `message` tool, and the chat last written to."""
