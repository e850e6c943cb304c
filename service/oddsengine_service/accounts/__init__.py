"""Accounts: keys, tiers, limits, and what keys store: bets, alerts, filters."""
