"""What runs underneath: clocks, caches, cancellation, PostgreSQL connections."""
