"""Metrics, logs and memory of a node."""
