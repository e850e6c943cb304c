"""Odds tables: columns and their types, files, frames of other libraries, polars expressions."""
