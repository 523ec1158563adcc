"""The tools that only the coder has: code by structure, analysis, packages, working notes."""
