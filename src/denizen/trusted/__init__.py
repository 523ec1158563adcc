"""What others trust, and a sandboxed command may not change: so far, programs that Denizen starts itself."""
