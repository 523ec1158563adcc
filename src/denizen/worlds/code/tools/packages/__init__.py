"""A project's dependencies, by its manifests and lock files."""
