"""How accepted messages survive: the ledger, its two databases, and the bells that wake workers."""
