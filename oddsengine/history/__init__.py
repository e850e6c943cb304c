"""Past prices: closing lines, closing line value, the archive."""
