"""Endpoints, one module per first path segment; `routing` has the table of all."""
