"""Guards what sandboxed commands may not change: programs that Denizen starts, files that run by themselves."""
