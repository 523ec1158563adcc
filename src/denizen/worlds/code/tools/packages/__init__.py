"""What a project depends on, as its manifests and lock files say."""
