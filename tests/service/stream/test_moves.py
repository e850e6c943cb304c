"""Groups of prices without a socket: after every update, what their events add up to is what the board has."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.effort import some
from support.stream_running import price, total, turned

from oddsengine.board import state as board_state
from oddsengine.live.engine import Engine
from oddsengine.query import Index, RowFilter
from oddsengine.simulate import FeedBatch, World
from oddsengine_service.stream.group_prices import PriceGroup
from oddsengine_service.stream.moves import RowForm, UpdateMoves

FRESH = {"last_seen_at", "odds_changed_at", "timestamp", "probability"}


class Holder:
    """Who merges the events of a group, and objects to whatever breaks a promise."""

    def __init__(self, group: PriceGroup) -> None:
        self.group = group
        self.odds: dict[str, dict[str, Any]] = {}
        taken = group.snapshot()
        assert taken.number == group.number
        self.merge(taken.frames)

    def merge(self, frames: list[bytes]) -> None:
        for text in frames:
            first, second, *_ = text.decode().split("\n")
            name, data = first.removeprefix("event: "), json.loads(second.removeprefix("data: "))
            if name == "snapshot":
                self.odds.update({row["id"]: row for row in data["odds"]})
            elif name == "odds:update":
                for delta in data["odds"]:
                    assert self.odds[delta["id"]]["sportsbook"] == data["book"]
                    self.odds[delta["id"]].update(delta)
            elif name == "odds:removed":
                for id_ in data["ids"]:
                    assert self.odds.pop(id_)["sportsbook"] == data["book"]
        assert self.group.total == len(self.odds)

    def held(self) -> dict[str, dict[str, Any]]:
        return {id_: {k: v for k, v in row.items() if k not in FRESH} for id_, row in self.odds.items()}


@pytest.mark.parametrize("few", some([40, 65_536], 1))
def test_events_add_up_to_the_board(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `few` small, terms get other codes again and again."""
    monkeypatch.setattr(board_state, "_FEW", few)
    draw = random.Random(few)
    engine = Engine()
    engine.keep_judged()
    index = Index(engine)
    holders: list[Holder] = []
    compared, renamed, crossed = 0, 0, 0
    names: Any = None
    start = datetime(2026, 2, 7, 18, tzinfo=UTC)
    for day in range(4):
        begin = start + timedelta(hours=12 * day)
        world = World(
            day, events=4, live=0.7, pace=20.0, hazards=True, start=begin,
            books=["pinnacle", "draftkings", "fanduel", "betmgm"],
        )  # fmt: skip
        later = [
            FeedBatch(begin + timedelta(hours=hour), [], [], []) for hour in (2, 4, 6)
        ]  # all leaves, and is forgotten
        for tick, batch in enumerate([*world.run(30), *later]):
            update = engine.step(turned(batch.quotes, draw), batch.now, complete=batch.complete, events=batch.events)
            marks = index.follow(update)
            if engine.state.board.names is not names:
                names, renamed = engine.state.board.names, renamed + 1
            moves = UpdateMoves(update, index, marks)
            crossed += int((moves.moved.before.live != moves.moved.live).sum())
            for holder in holders:
                holder.merge(holder.group.events(moves))
            if tick % 13 == 1:
                events = engine.table()["event_id"].unique().sort().to_list()
                chosen = RowFilter(
                    books=draw.choice([None, frozenset({"pinnacle", "betmgm"}), frozenset({"nobody"})]),
                    sport=draw.choice([None, None, ("basketball", "soccer")]),
                    market=draw.choice([None, ("main",), ("props", "total_points")]),
                    event=draw.choice([None, None, tuple(events[:2])]),
                    live=draw.choice([None, True, False]),
                )
                holders.append(Holder(PriceGroup(chosen, RowForm(draw.choice(["", "nj"]), draw.random() < 0.3), index)))
            if tick % 4 == 0:
                for holder in draw.sample(holders, min(len(holders), 3)):
                    group = holder.group
                    assert holder.held() == Holder(PriceGroup(group.wanted, group.form, index)).held()
                    compared += len(holder.odds)
    assert compared > 500
    assert crossed > 10
    assert (renamed > 1) == (few == 40)  # the first names count too


def test_an_event_of_another_sport_is_sent_at_once() -> None:
    engine, now = Engine(), datetime(2026, 2, 7, 18, tzinfo=UTC)
    engine.keep_judged()
    index = Index(engine)

    def step(number: int, *quotes: dict[str, Any], **more: Any) -> UpdateMoves:
        update = engine.step([*quotes], now + timedelta(seconds=number), **more)
        marks = index.follow(update)
        return UpdateMoves(update, index, marks)

    def named(book: str, sport: str, league: str) -> list[dict[str, Any]]:
        place = {"sport": sport, "league": league}
        return [price("e", book, side, 1.9, **place) for side in ("Home", "Away")]

    bare = [*named("betmgm", "", ""), total("e", "betmgm", "Over", 40.5, 1.9) | {"sport": "", "league": ""}]
    step(0, *bare, *named("fanduel", "basketball", "nba"))
    filters = [
        RowFilter(), RowFilter(sport=("basketball",)), RowFilter(sport=("football",)), RowFilter(league=("nba",)),
        RowFilter(sport=("football",), live=False), RowFilter(sport=("basketball",), live=False),
        RowFilter(market=("main",)), RowFilter(sport=("football",), books=frozenset({"fanduel"})),
        RowFilter(sport=("basketball",), live=True),
    ]  # fmt: skip
    holders = [Holder(PriceGroup(each, RowForm(), index)) for each in filters]
    sports, others = [], [*named("caesars", "football", "nfl"), *named("bet365", "football", "nfl")]
    for number, quotes, complete in (
        (1, others, []),
        (2, [price("e", "betmgm", "Home", 1.95, sport="", league="")], []),
        (3, [], [("caesars", "e"), ("bet365", "e")]),
        (4, [*others, bare[0] | {"odds_decimal": 2.1}], []),
    ):
        moves = step(number, *quotes, complete=complete)
        for holder in holders:
            holder.merge(holder.group.events(moves))
            wanted = holder.group.wanted
            assert holder.held() == Holder(PriceGroup(wanted, RowForm(), index)).held(), wanted
        sports.append({row["sport"] for row in holders[0].odds.values() if row["sportsbook"] == "betmgm"})
    assert sports == [{"football"}, {"football"}, {"basketball"}, {"football"}]
