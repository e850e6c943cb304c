"""Cornerbook, an invented sportsbook: `kind = "cornerbook"` of a feed."""
