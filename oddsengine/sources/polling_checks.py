"""Checks that feeds are polled often enough for the guards, which reject old prices as stale."""

from oddsengine import catalog
from oddsengine.sources.source_settings import (
    FeedSettings,
    InterfaceSettings,
    KalshiSettings,
    PolledSettings,
    PolymarketSettings,
    TableSettings,
    TheOddsApiSettings,
)


def too_slow(feed: FeedSettings, *, seen: bool = True) -> str:
    """Return why a feed's settings let pre-match prices become stale; empty if they do not.

    `seen`: an upstream node says when it sees prices again; else they are as fresh as `freshen` makes them.

    Examples
    --------
    >>> too_slow(InterfaceSettings(name="up", kind="interface", url="https://a", stream=False, interval=900.0))
    'interval is 900 s, but prices older than 600 s are rejected as stale'
    """
    if isinstance(feed, TableSettings):
        return ""  # its prices are as good as the document that lists them
    return _beyond(feed, catalog.thresholds().stale_prematch_s, "", seen=seen)


def too_slow_in_play(feed: FeedSettings) -> str:
    """The same for games in play."""
    return _beyond(feed, catalog.thresholds().stale_live_s, " in play", seen=True)


def _beyond(feed: FeedSettings, oldest: float, when: str, *, seen: bool) -> str:
    settings = {}
    if (
        isinstance(feed, TheOddsApiSettings | TableSettings | PolledSettings)
        or (isinstance(feed, InterfaceSettings | PolymarketSettings) and not feed.stream)
        or (isinstance(feed, KalshiSettings) and not feed.key_env)
    ):
        settings["interval"] = feed.interval
    if isinstance(feed, InterfaceSettings) and not seen:
        settings["freshen"] = feed.freshen
    return next(
        (
            f"{name} is {seconds:g} s, but prices{when} older than {oldest:g} s are rejected as stale"
            for name, seconds in settings.items()
            if seconds > oldest
        ),
        "",
    )
