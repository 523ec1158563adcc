"""Import of other assistants' files."""
