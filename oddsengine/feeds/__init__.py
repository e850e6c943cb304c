"""Formats of odds sources: pure parsers, payload in, quotes out."""

from oddsengine.feeds.payload import FeedError, Game, Payload

__all__ = ["FeedError", "Game", "Payload"]
