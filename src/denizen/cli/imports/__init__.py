"""Taking over from other assistants."""
