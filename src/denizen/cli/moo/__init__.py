"""The text world at the command line: `denizen moo`."""
