"""What a project depends on: its manifests, its lock files, and what registries and advisories say of them."""
