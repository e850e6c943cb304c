"""Golden tapes: recorded worlds, and what the engine made of each of their steps.

A rebuild of the engine replays them to the same updates. `tapes/NAME` is a tape; `tapes/NAME.ndjson.zst` has a line a
step: a digest of what became of the board's rows, for every one of `VIEWS` what was detected and what expired, and for
every one of `CROWD` a digest of that. Figures are compared to nine digits, so that sums may be taken in another order.

    PYTHONPATH=tests python tests/support/golden.py NAME ...     records them anew, all without a name; say why in the
                                                                 commit
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from support.live_strategies import Feed, feed

from oddsengine import catalog
from oddsengine.board.facts import Facts
from oddsengine.identity.groups import mix
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.simulate import World
from oddsengine.tape import Tape, TapeWriter, play

TAPES = Path(__file__).parents[1] / "tapes"
SOFT = ("draftkings", "fanduel", "betmgm", "caesars", "bet365", "bovada", "betrivers")
VIEWS: tuple[dict[str, Any], ...] = (
    {"min_middle_ev": None, "min_ev": -1.0, "max_hold": 4.0, "method": "power"},
    {"books": SOFT, "min_profit": -0.5, "method": "power"},
    {"sharp": {"pinnacle": 3.0, "circa": 1.0, "betfair_exchange": 2.0}, "method": "shin", "kinds": ["ev", "middles"]},
    {"books": [*SOFT, "betfair_exchange", "kalshi"], "commission": {"betfair_exchange": 0.05}, "sharp": ["circa"]},
    {"min_ev": -1.0, "min_middle_ev": None, "max_hold": 4.0, "min_profit": -0.5},
    {"books": [*SOFT, "kalshi"], "commission": {"kalshi": 0.03}, "include": ["suspect"], "min_ev": -2.0},
)
CROWD: tuple[dict[str, Any], ...] = tuple(
    {"books": books, "min_ev": least, "min_profit": least - 0.5, "min_middle_ev": least - 1.0, "max_hold": 2.0, **more}
    for books in (SOFT[:2], SOFT[1:4], SOFT[3:], (*SOFT[:3], "pinnacle"), ("pinnacle", "circa", "bet365"))
    for least in (-0.5, 0.5)
    for more in ({"method": "close"}, {"method": "shin", "sharp": "pinnacle"}, {"commission": {"fanduel": 0.02}})
)
EARLIER = catalog.read_fair_table(json.loads((TAPES / "fair-2026-08.json").read_bytes()))
OF_BEFORE = ("pregame", "hazards", "turned", "exchanges")
"""Worlds that replay with these, the constants of tapes recorded before 2026-11-27; the others with today's."""
KINDS = ("ev", "arbitrage", "low_hold", "middles")
GUARDS_MET = {
    "book_sum", "duplicate_outcome", "flap", "internal_conflict", "ladder", "ladder_cross", "mid_price_source",
    "one_team_lines", "outlier", "price_mismatch", "side_conflict", "stale", "started_not_live",
}  # fmt: skip
Steps = Iterator[dict[str, Any]]


def world(seed: int, seconds: float, **words: Any) -> Callable[[Engine], Steps]:
    """A world of the simulator."""

    def steps(_: Engine) -> Steps:
        for batch in World(seed, hazards=True, **words).run(seconds):
            yield {"quotes": batch.quotes, "now": batch.now, "complete": batch.complete, "events": batch.events}

    return steps


def fed(seeds: Iterable[int], count: int, **words: Any) -> Callable[[Engine], Steps]:
    """Feeds to which things happen: teams swap, draws come and go, rows leave and return, prices flap."""

    def steps(engine: Engine) -> Steps:
        feeds: list[Feed] = [feed(seed, **words) for seed in seeds]
        for at, one in enumerate(feeds):
            for row in (*one.quoted, *one.waiting):
                row["event_id"] = f"{at}-{row['event_id']}"
        first = [one.first() for one in feeds]
        yield {"quotes": [row for step in first for row in step.quotes], "now": first[0].now}
        for at in range(count):
            one = feeds[at % len(feeds)]
            one.now = max(other.now for other in feeds)
            table = engine.table()
            ids = dict(zip(table.select(_KEY).iter_rows(), table["row_id"].to_list(), strict=True))
            step = one.step(ids)
            yield step._asdict()

    return steps


_KEY = (
    "sportsbook", "event_id", "sport", "league", "home_team", "away_team", "market_type", "market_segment", "selection",
    "selection_type", "player_name", "stat_category", "team_side", "line",
)  # fmt: skip
WORLDS: dict[str, Callable[[Engine], Steps]] = {
    "pregame": world(11, 240, events=5, live=0.0, tick=4.0),
    "live": world(12, 150, events=4, live=1.0, tick=2.0, pace=30.0),
    "start": world(13, 200, events=4, live=0.3, tick=4.0, pace=20.0, books=[*SOFT, "pinnacle", "novig", "kalshi"]),
    "hazards": fed((21, 22, 23), 90, events=2, books=9),
    "turned": fed((31, 32, 33, 34), 90, events=2, books=7),
    "exchanges": fed((41, 42, 43), 90, events=3, books=10),
    "ladders": fed((51, 52), 70, events=2, books=14),
}


def plain(engine: Engine, update: Update, views: Mapping[int, View], crowd: Sequence[View]) -> dict[str, Any]:
    """What a step did, in values that compare."""
    return {
        "number": update.number,
        "rows": {"changed": rows_digest(update.facts.take(update.rows)), "what": digest(sorted(update.what.tolist())),
                 "gone": digest(sorted(update.removed_rows.id.tolist())), "late": update.late,
                 "again": len(update.again)},
        "aside": engine.rejected_counts(),
        "views": {str(at): opened(update.plain(view)) for at, view in views.items() if view in update.views},
        "crowd": [told(update, view) for view in crowd],
    }  # fmt: skip


def rows_digest(facts: Facts) -> str:
    """A digest of rows in order of id."""
    return digest(sorted(mix(facts.id, facts.odds.view("i8"), facts.flags, facts.changed, facts.start).tolist()))


def digest(values: list[Any]) -> str:
    """A short digest of plain values."""
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=8).hexdigest()


def opened(update: dict[str, Any]) -> dict[str, Any]:
    """What a view gained and lost, in order of id, figures to nine digits."""
    detected = sorted((figures(each) for each in update["detected"]), key=lambda each: (each["kind"], each["id"]))
    return {"detected": detected, "expired": sorted(update["expired"])}


def told(update: Update, view: View) -> str:
    """A digest of what a view gained and lost, in order of id, figures to nine digits; empty if nothing."""
    change, facts = update.of(view), update.facts
    hits = change.hits
    if not (hits.size or change.expired.size):
        return ""
    held = hits.legs >= 0
    ids = np.zeros(held.shape, np.uint64)
    ids[held] = facts.id[facts.places(hits.legs[held])]
    values = [[f"{value:.9g}" for value in row] for row in hits.figures.tolist()]
    columns = [column.tolist() for column in (hits.kind, hits.id, change.status, change.detected_at, ids)]
    found = zip(*columns, values, strict=True)
    return digest([sorted(found), sorted(zip(change.expired_kind.tolist(), change.expired.tolist(), strict=True))])


def figures(each: dict[str, Any]) -> dict[str, Any]:
    """An opportunity with its figures to nine digits; of its legs what they are and pay."""
    short = {name: float(f"{value:.9g}") if isinstance(value, float) else value for name, value in each.items()}
    short["legs"] = [[leg["id"], leg["odds_decimal"]] for leg in each["legs"]]
    return short


def replayed(name: str, **words: Any) -> Iterator[dict[str, Any]]:
    """What today's engine, made with some words, makes of a tape, step by step."""
    tape = Tape(TAPES / name)
    catalog.forget()
    catalog.load(TAPES / "catalog-2026-08.toml")
    try:
        engine = Engine(fair=EARLIER if name in OF_BEFORE else None, **words)
        views = {at: engine.view(**words, keep=True) for at, words in enumerate(VIEWS)}
        crowd = [engine.view(**words, keep=True) for words in CROWD]
        for _, update in play(tape, engine):
            yield json.loads(json.dumps(plain(engine, update, views, crowd)))
    finally:
        catalog.forget()


def expected(name: str) -> list[dict[str, Any]]:
    """What was recorded of it."""
    packed = (TAPES / f"{name}.ndjson.zst").read_bytes()
    lines = zstandard.ZstdDecompressor().decompress(packed, max_output_size=1 << 28)
    return [json.loads(line) for line in lines.splitlines()]


def record(name: str) -> None:
    """Record a world and what the engine makes of it."""
    shutil.rmtree(TAPES / name, ignore_errors=True)
    engine = Engine()
    with TapeWriter(TAPES / name, sync="never", block_s=3600.0) as writer:
        writer.follow(engine)
        for step in WORLDS[name](engine):
            engine.step(**step)
    retell(name)


def retell(name: str) -> None:
    """Keep what today's engine makes of a tape."""
    lines = "\n".join(json.dumps(step, separators=(",", ":")) for step in replayed(name))
    (TAPES / f"{name}.ndjson.zst").write_bytes(zstandard.ZstdCompressor(19).compress(lines.encode()))


if __name__ == "__main__":
    assert catalog.books()
    only = "--updates" in sys.argv
    for chosen in [word for word in sys.argv[1:] if not word.startswith("-")] or WORLDS:
        (retell if only else record)(chosen)
