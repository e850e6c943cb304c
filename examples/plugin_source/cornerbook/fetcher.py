"""Fetches what the reader reads: a request for each league, again and again, and never faster than the key allows."""

from collections.abc import Mapping
from importlib.resources import files

from oddsengine.feeds import Payload
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.venue_contracts import read as read_contract
from oddsengine.sources import Failure, Secrets, Source, SourceKind
from oddsengine.sources.polling import PacedWeb, PolledSource
from oddsengine.sources.source_settings import PolledSettings, Rate, Required, Url

from .reader import LEAGUES, read


class CornerbookSettings(PolledSettings, frozen=True, kw_only=True):
    """Settings of a feed of this kind, beside those of all polled feeds; `sports` are its leagues."""

    key_env: Required  # the name of the variable with the key
    url: Url = "https://api.cornerbook.example"
    rate: Rate = 1.0  # requests a second


def source(feed: CornerbookSettings, env: Mapping[str, str], secrets: Secrets) -> Source:
    """Create the fetcher of a feed; `env` has the secrets by the names of their settings."""
    listed = ListedIds()

    async def turn(web: PacedWeb, league: str) -> Payload:
        if league not in LEAGUES.values():
            raise Failure(f"{league} is not one of its leagues: {', '.join(LEAGUES.values())}", fatal=True)
        answer = await web.get("/v1/games", [("league", league)])
        return await web.parsed([answer.body], lambda: read(league, answer, listed))

    return PolledSource(feed, secrets, turn, {"x-api-key": env["key_env"]})


CONTRACT = read_contract("cornerbook", files(__package__).joinpath("contract.toml").read_text(encoding="utf-8"))
KIND = SourceKind(
    CornerbookSettings, source, variables={"key_env": "CORNERBOOK_KEY"}, leagues=LEAGUES, contract=CONTRACT
)  # fmt: skip
