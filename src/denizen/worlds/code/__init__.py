"""The code world: an agent in a project, which keeps what matters and can undo what it did."""
