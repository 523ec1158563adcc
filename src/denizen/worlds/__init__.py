"""Where an agent lives: one package for each kind of place."""
