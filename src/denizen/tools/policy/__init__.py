"""Which calls may run: rules, risk, secrets, and defaults of arguments."""
