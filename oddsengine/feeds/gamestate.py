"""Game states of another node as a feed: responses of `/gamestate` and the stream's channel.

States refer to events by the upstream's ids; their teams are known from the upstream's prices. States that the upstream
marks as stale are dropped.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import plain
from oddsengine.feeds.merged_scores import ARRIVAL, FINAL, ScoreReading
from oddsengine.feeds.node_api import read_document, removed_ids
from oddsengine.feeds.payload import FeedError, Payload

_SOURCE = "the interface"
_NOTHING = Payload()


class _GameStateRow(msgspec.Struct):
    home_score: int | None = None
    away_score: int | None = None
    game_period: str | None = None
    game_clock: str | None = None
    possession: str | None = None
    sport: str | None = None
    is_live: bool | None = None
    stale: bool = False


def read_states(data: bytes) -> Payload:
    """Parse a response of `/gamestate`, for all sports or one.

    Raises `FeedError` if the response is invalid or an error.

    Examples
    --------
    >>> body = b'{"data":{"soccer":{"e":{"sport":"soccer","home_score":1,"away_score":0,"game_period":"2H"}}}}'
    >>> [(reading.event, reading.score, reading.period) for reading in read_states(body).scores]
    [('e', (1, 0), '2H')]
    """
    document = read_document(data)
    sports = document.get("data") if isinstance(document, dict) else None
    if not isinstance(sports, dict):
        raise FeedError(f"not a payload of {_SOURCE}: it has no game states")
    refused: Counter[str] = Counter()
    states: dict[str, _GameStateRow] = {}
    for events in sports.values():
        states |= _states(events, refused)
    return Payload(refused=refused, scores=_readings(states))


class GameStates:
    """The channel of one upstream, across reconnects.

    Examples
    --------
    >>> stream = GameStates()
    >>> _ = stream.read("gamestate:snapshot", b'{"e": {"home_score": 0, "away_score": 0}}')
    >>> stream.read("gamestate:update", b'{"e": {"home_score": 1, "away_score": 0}}').scores[0].score
    (1, 0)
    >>> [reading.event for reading in stream.alive().scores]
    ['e']
    """

    def __init__(self) -> None:
        self._states: dict[str, _GameStateRow] = {}

    def read(self, event: str, data: bytes) -> Payload:
        """Parse one event of the stream; events of other channels return nothing.

        Raises `FeedError` if the event is invalid; the state is unchanged.
        """
        if event in ("gamestate:snapshot", "gamestate:update"):
            refused: Counter[str] = Counter()
            events = plain(data, _SOURCE)
            if not isinstance(events, dict):
                raise FeedError(f"not a payload of {_SOURCE}: game states are an object")
            states = _states(events, refused)
            self._states = states if event == "gamestate:snapshot" else self._states | states
            return Payload(refused=refused, scores=_readings(states))
        if event == "gamestate:removed":
            for id_ in removed_ids(data):
                self._states.pop(id_, None)
        elif event == "connected":
            self._states = {}
        return _NOTHING

    def alive(self) -> Payload:
        """Report that the stream is alive: the last state of each game is current."""
        return Payload(scores=_readings(self._states))


def _states(events: Any, refused: Counter[str]) -> dict[str, _GameStateRow]:
    states = {}
    for event, state in events.items() if isinstance(events, dict) else ():
        try:
            states[event] = msgspec.convert(state, _GameStateRow)
        except msgspec.ValidationError:
            refused["a game state that is not valid"] += 1
    return states


def _readings(states: Mapping[str, _GameStateRow]) -> list[ScoreReading]:
    out = []
    for event, state in states.items():
        if not state.stale:
            period = (state.game_period or "").strip().upper()
            over = period == FINAL or (state.is_live is False and state.home_score is not None)
            out.append(
                ScoreReading(
                    event, "", ARRIVAL, state.home_score, state.away_score, period, state.game_clock or "",
                    state.possession or "", over, catalog.sport(state.sport or "").id,
                )
            )  # fmt: skip
    return out
