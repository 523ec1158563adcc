"""Full-screen programs in a terminal. Everything here needs textual: the extra `denizen[tui]`."""
