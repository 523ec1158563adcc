"""The workspace's files on disk: which may be touched, how they are found, read as text, and changed together."""
