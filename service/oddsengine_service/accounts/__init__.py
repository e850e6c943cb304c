"""Accounts: keys and their limits, and the records that keys store."""
