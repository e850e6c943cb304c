"""Which prices can be bet."""
