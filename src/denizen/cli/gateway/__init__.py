"""The gateway at the command line: `denizen gateway`, `denizen send`, `denizen status`."""
