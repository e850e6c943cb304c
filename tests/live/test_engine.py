"""The laws of the live engine: what its steps, views and updates must be, on tapes of boards with all hazards.

The rules of single rows have their own twin in `test_rows.py`.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.boards import meant, unnumbered
from support.hazards import NOW, SECOND
from support.live_strategies import DISAGREEMENTS, Feed, Step, feed, moment, row_ids
from support.rows import LA_LIGA, MOMENT, NBA, NHL, moneyline, prop, spread, total, whatever_is_found

import oddsengine as oe
from oddsengine.board.row_links import LINKS
from oddsengine.detection.opportunity_ids import hash_text
from oddsengine.live import snapshot
from oddsengine.live.engine import IDLE_S, Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.query import BoardStats, Index, RowFilter

KINDS = ("ev", "arbitrage", "low_hold", "middles")
WIDE: dict[str, Any] = dict(min_ev=-4.0, min_profit=-6.0, max_hold=9.0, min_middle_ev=None, max_profit=None)
ASKED: tuple[dict[str, Any], ...] = (
    {},
    WIDE,
    WIDE | dict(books=["draftkings", "pinnacle"], sharp="circa"),
    WIDE | dict(books=["fanduel", "betmgm", "caesars", "unibet", "kalshi"], method="multiplicative"),
    WIDE | dict(books=["bet365", "draftkings", "zebra_bets"], sharp=["betonline", "circa", "pinnacle"]),
    WIDE | dict(sharp={"pinnacle": 3, "circa": 1, "betfair_exchange": 1}, commission={"novig": 0.02, "unibet": 0.01}),
    WIDE | dict(method="close", books=["draftkings", "fanduel", "betmgm", "novig"], commission={"novig": 0.03}),
    WIDE | dict(method="close", include=["suspect"]),
    WIDE | dict(include=["suspect", "one_sided"]),
)
SEEDS = st.integers(0, 2**32 - 1)


def few(share: int) -> settings:
    """A share of the profile's examples: a tape is a long one."""
    return settings(max_examples=max(1, settings().max_examples // share))


def apply(engine: Engine, step: Step) -> Update:
    return engine.step(step.quotes, step.now, removed=step.removed, complete=step.complete, events=step.events)


def tape(feed: Feed, engine: Engine, steps: int) -> Iterator[tuple[Step, Update]]:
    """Let an engine follow a feed, step by step."""
    first = feed.first()
    yield first, apply(engine, first)
    for _ in range(steps):
        step = feed.step(row_ids(engine.table()))
        yield step, apply(engine, step)


def opened(engine: Engine) -> list[View]:
    """A view for each of `ASKED`."""
    return [engine.view(**words, keep=True) for words in ASKED]


def same_frames(live: oe.Opportunities, whole: oe.Opportunities) -> None:
    """Equal ids, and equal figures to the last digits."""
    for kind in KINDS:
        frames = (unnumbered(getattr(found, kind)) for found in (live, whole))
        ours, theirs = (frame.drop("detected_at").sort("id") for frame in frames)
        assert ours["id"].to_list() == theirs["id"].to_list(), kind
        assert ours["id"].is_unique().all()
        assert_frame_equal(ours, theirs, check_exact=False, rel_tol=1e-12, abs_tol=1e-12)


def counted(found: oe.Opportunities) -> dict[str, int]:
    """Rejected rows; results over a cap are no rows."""
    return {name: n for name, n in found.rejected_counts.items() if name not in ("ev_cap", "profit_cap")}


def board_alone(engine: Engine, refused: Mapping[str, int]) -> dict[str, int]:
    """What the engine sets aside of the rows that are on the board."""
    held = {name: n - refused.get(name, 0) for name, n in engine.rejected_counts().items()}
    return {name: n for name, n in held.items() if n}


def refusals(update: Update, so_far: dict[str, int]) -> None:
    for guard, n in update.rejected.group_by("guard").len().iter_rows():
        so_far[guard] = so_far.get(guard, 0) + n


# ---- the open set is that of the whole table ----


def equal_to_the_table(engine: Engine, views: Mapping[int, View], refused: Mapping[str, int]) -> None:
    """Whatever the order of its rows."""
    table = engine.table().sample(fraction=1.0, shuffle=True, seed=engine.number)
    prepared = oe.prepare(table, now=engine.moment)
    for at, view in views.items():
        books = meant(ASKED[at].get("books"), prepared.identity.books)
        with whatever_is_found():
            whole = oe.find_all(prepared, **{**ASKED[at], "books": books})
        same_frames(view.opportunities(), whole)
        assert view.ids() == ids_of(whole)
    with whatever_is_found():
        assert board_alone(engine, refused) == counted(oe.find_all(prepared))


def ids_of(found: oe.Opportunities) -> dict[str, list[str]]:
    return {kind: sorted(ident[-16:] for ident in getattr(found, kind)["id"]) for kind in KINDS}


@few(5)
@given(SEEDS)
def test_what_is_open_is_what_the_table_holds(seed: int) -> None:
    engine, refused = Engine(), dict[str, int]()
    views = opened(engine)
    for number, (_, update) in enumerate(tape(feed(seed), engine, 5), seed):
        refusals(update, refused)
        n = len(ASKED)
        looked = {number % n, (number + 1) % n} if engine.number < 6 else range(n)
        equal_to_the_table(engine, {at: views[at] for at in looked}, refused)


@few(5)
@given(SEEDS)
def test_what_is_open_where_books_disagree_about_the_sport(seed: int) -> None:
    engine, refused = Engine(), dict[str, int]()
    views = {at: engine.view(**ASKED[at], keep=True) for at in (0, 1, 6)}
    said = feed(seed)
    said.happenings = DISAGREEMENTS
    for number, (_, update) in enumerate(tape(said, engine, 6)):
        refusals(update, refused)
        equal_to_the_table(engine, {at: views[at] for at in {number % 2, 6}}, refused)


def test_the_sport_of_an_event_is_that_of_most_rows() -> None:
    """Not that of the first row; it follows the rows on the board, and what is open stays open meanwhile."""
    arb = [*moneyline("fanduel", 2.2, 1.8, **NHL), *moneyline("draftkings", 1.8, 2.2, **NHL)]
    other = [*total("betmgm", 5.5, 1.9, 1.9, **NHL | dict(sport="baseball", league="mlb")),
             *total("unibet", 5.5, 1.9, 1.9, **NHL | dict(sport="baseball", league=None))]  # fmt: skip
    engine = Engine()
    view = engine.view(keep=True)

    def sport(**words: Any) -> tuple[str, str]:
        engine.step(**words)
        (live,) = engine.state.board.names.events.sports
        (whole,) = oe.prepare(engine.table().reverse(), now=engine.moment).identity.sports
        assert live == whole
        with whatever_is_found():
            same_frames(view.opportunities(), oe.find_all(engine.table(), now=engine.moment))
        return live[0].id, live[1]

    assert sport(quotes=other[:1], now=MOMENT) == ("baseball", "mlb")
    assert sport(quotes=arb, now=MOMENT) == ("hockey", "nhl")
    detected_at = view.opportunities().arbitrage.select("id", "detected_at")
    assert detected_at.height == 1
    later = MOMENT + timedelta(seconds=1)
    assert sport(quotes=other, now=later) == ("baseball", "mlb")  # four rows each; the smaller
    assert view.opportunities().arbitrage.select("id", "detected_at").equals(detected_at)
    ids = engine.table().filter(pl.col("sportsbook").is_in(["betmgm", "unibet"]))["row_id"]
    update = engine.step([], later, removed=ids[:1])
    assert engine.state.board.names.events.sports[0][0].id == "hockey"
    assert not update.views[view].ids("arbitrage", new=True)
    assert not update.views[view].expired_ids("arbitrage")
    assert sport(quotes=[], now=later) == ("hockey", "nhl")


def test_a_row_without_a_sport_is_listed_under_that_of_its_event() -> None:
    """Also once most rows name another one."""
    engine = Engine()
    index = Index(engine)

    def listed() -> set[tuple[str, str, str]]:
        with index.reader() as reader:
            columns = reader.take(reader.matching_rows(RowFilter(), {}))
            event = reader.event("h")
        assert event is not None
        assert {(event.sport, event.league)} == {(game.sport, game.league) for game in BoardStats(engine, None).games}
        return {(text.sport, text.league, text.market_type) for text in (columns.texts[term] for term in columns.term)}

    engine.step(total("pinnacle", 5.5, 1.9, 1.9, "totals", **NHL | dict(sport=None, league=None)), MOMENT)
    assert listed() == {("", "", "total_points")}
    engine.step(total("betmgm", 5.5, 1.9, 1.9, "totals", **NHL | dict(sport="baseball", league="mlb")), MOMENT)
    assert listed() == {("baseball", "mlb", "total_runs")}
    for book in ("fanduel", "draftkings"):
        engine.step(total(book, 5.5, 1.9, 1.9, "totals", **NHL), MOMENT)
    assert listed() == {("baseball", "mlb", "total_runs"), ("hockey", "nhl", "total_goals")}
    with index.reader() as reader:
        columns = reader.take(reader.matching_rows(RowFilter(books=frozenset({"pinnacle"})), {}))
        assert {columns.texts[term].market_type for term in columns.term} == {"total_goals"}


BOOKS = ("pinnacle", "fanduel", "draftkings", "betmgm", "novig", "circa")


def player(rng: random.Random) -> list[list[Any]]:
    """Four lines of one player, each at every book."""
    return [
        prop(book, "A", 20.5 + line, round(1.95 + 0.15 * line + rng.gauss(0.0, 0.05), 3),
             round(1.95 - 0.12 * line + rng.gauss(0.0, 0.05), 3), last_seen_at=None)
        for book in BOOKS for line in range(4)
    ]  # fmt: skip


def game(rng: random.Random, names: dict[str, Any]) -> list[list[Any]]:
    """Moneyline, total and spreads of one game, whose line next to zero nobody quotes on both sides."""
    quoted = []
    for book in BOOKS:
        by = rng.gauss(0.0, 0.03)
        words = names | dict(last_seen_at=None)
        quoted.append(moneyline(book, 1.95 + by, 1.98 - by, 3.4 if names is LA_LIGA else None, **words))
        quoted.append(total(book, 5.5, 1.9 + by, 1.92 - by, "total_goals", **words))
        for line, home, away in ((-2.5, 2.3, 1.66), (-1.5, 2.12, 1.83), (-0.5, 1.98, 1.95), (1.5, 1.7, 2.2)):
            quoted.append(
                spread(book, line, round(home + by, 3), None if line == -0.5 else round(away - by, 3), **words)
            )
    return quoted


@pytest.mark.parametrize("asked", [ASKED, ASKED[:2]], ids=["all", "at_the_close"])
@pytest.mark.parametrize("world", ["player", "nba", "nhl", "la_liga"])
def test_figures_are_those_of_a_search_of_everything(world: str, asked: Sequence[dict[str, Any]]) -> None:
    """Markets of a ladder move one at a time; what rests on the others is what a search of everything gives."""
    engine, rng, now = Engine(), random.Random(1), MOMENT
    views = [engine.view(**words, keep=True) for words in asked]
    games = {"nba": NBA, "nhl": NHL, "la_liga": LA_LIGA}
    quoted = player(rng) if world == "player" else game(rng, games[world])
    engine.step([row for rows in quoted for row in rows], now)
    middles = 0
    for _ in range(4):
        for last in (False, False, False, False, True):
            now += timedelta(seconds=1)
            by = rng.uniform(0.97, 1.03)
            first, *others = rng.choice(quoted[::6] if last else quoted)  # at last the moneyline, of a game
            engine.step([first | {"odds_decimal": first["odds_decimal"] * by},
                         *(row | {"odds_decimal": row["odds_decimal"] / by} for row in others)], now)  # fmt: skip
        stepped = [figures(view) for view in views]
        middles += sum(kind == KINDS.index("middles") for held in stepped for kind, _ in held)
        for view in views:
            view.close()
        views = [engine.view(**words, keep=True) for words in asked]
        for view, before in zip(views, stepped, strict=True):
            view.ids()  # searches everything
            assert figures(view) == before
    assert middles


def figures(view: View) -> dict[tuple[int, int], list[float]]:
    """Figures and legs of all that a view holds open."""
    held, at = view.open.table, view.open.places()
    values = np.nan_to_num(held.figures[at], nan=-1.0)
    keys = zip(held.kind[at].tolist(), held.id[at].tolist(), strict=True)
    return dict(zip(keys, np.hstack((values, held.legs[at])).tolist(), strict=True))


def test_equal_prices_in_two_raw_labels() -> None:
    """Which of two equal rows is shown does not hang on which came first."""
    shown = set()
    for texts in (("Over 220.5", "OVER 220.5"), ("OVER 220.5", "Over 220.5")):
        engine = Engine()
        view = engine.view(**WIDE)
        twice = [total("fanduel", 220.5, 1.95, None)[0] | {"selection": text} for text in texts]
        engine.step([*twice, *total("draftkings", 220.5, None, 1.95)], MOMENT)
        live, whole = view.opportunities(), oe.find_all(engine.table(), now=MOMENT, **WIDE)
        assert live.low_hold.height == 1
        same_frames(live, whole)
        # Their ids do: the second of two rows that are named alike gets the next id.
        shown.add(str(live.low_hold["side1"].struct.unnest().drop("odds_ids").rows()))
    assert len(shown) == 1


def test_many_books_and_lines_in_any_order() -> None:
    """Long lists are sorted in another way than short ones."""
    rng = random.Random(3)
    books = [f"book {at}" for at in range(120)]
    quoted = [
        row | {"last_seen_at": moment(NOW - rng.randrange(4 * SECOND)), "is_live": True}
        for book in books
        for by in [rng.gauss(0.0, 0.01)]
        for line in (220.5, 221.5)
        for row in total(book, line, 1.95 + round(by, 2), 1.95 - round(by, 3))
    ]
    orders = rng.sample(quoted, len(quoted)), quoted[::-1]
    whole = oe.find_all(pl.DataFrame(quoted), now=MOMENT, **WIDE)
    assert whole.arbitrage.height == 2
    assert whole.middles.height == 1
    for rows in orders:
        again = oe.find_all(pl.DataFrame(rows), now=MOMENT, **WIDE)
        assert_frame_equal(unnumbered(again.low_hold), unnumbered(whole.low_hold))
        engine = Engine()
        views = engine.view(**WIDE, keep=True), engine.view(**WIDE | dict(books=books), keep=True)
        engine.step(rows, MOMENT)
        for view in views:  # several users share the sorted prices
            assert view.ids() == ids_of(whole)
            same_frames(view.opportunities(), oe.find_all(engine.table(), now=engine.moment, **WIDE))


def test_a_new_book_costs_the_same_however_many_there_are() -> None:
    """Names are hashed and sorted once for a batch, not once for each new book."""
    engine = Engine()
    before = hash_text.cache_info()
    engine.step([row for at in range(1000) for row in total(f"new book {at}", 220.5, 1.95, 1.9)], MOMENT)
    after = hash_text.cache_info()
    assert after.hits + after.misses - before.hits - before.misses < 10_000


# ---- some kinds alone ----


@few(4)
@given(SEEDS, st.sets(st.sampled_from(KINDS), min_size=1, max_size=3), st.sampled_from(ASKED))
def test_some_kinds_alone_are_those_of_all(seed: int, some: set[str], words: dict[str, Any]) -> None:
    """A view of fewer kinds has what the view of all has of these, at every step, and nothing else."""
    engine = Engine()
    all_, few_ = engine.view(**words, keep=True), engine.view(**words, kinds=some, keep=True)
    for _, update in tape(feed(seed), engine, 4):
        expected, found = all_.ids(), few_.ids()
        assert found == {kind: ids if kind in some else [] for kind, ids in expected.items()}
        whole, part = all_.opportunities(), few_.opportunities()
        for kind in KINDS:
            frame = getattr(whole, kind)
            assert_frame_equal(getattr(part, kind), frame if kind in some else frame.clear())
        if few_ in update.views:
            one, other = update.views[few_], update.views[all_]
            assert all(one.ids(kind, new=True) == other.ids(kind, new=True) for kind in some)
            assert all(one.expired_ids(kind) == other.expired_ids(kind) for kind in some)


def test_a_view_is_awake_while_anybody_keeps_it() -> None:
    """A stream that ends releases its view, which closing lines follow too."""
    engine = Engine()
    engine.step([*total("fanduel", 220.5, 1.95, None), *total("draftkings", 220.5, None, 1.95)], MOMENT)
    one, other = engine.view(keep=True), engine.view(keep=True)
    assert one is other
    one.release()
    engine.step([], MOMENT + timedelta(hours=1))
    assert engine.views == (one,)
    other.release()
    other.release()  # once more than it was kept
    one.ids()
    engine.step([], MOMENT + timedelta(hours=1, seconds=IDLE_S))
    assert engine.views == (one,)
    engine.step([], MOMENT + timedelta(hours=2))
    assert not engine.views
    engine.view(keep=True)
    engine.step([], MOMENT + timedelta(hours=3))
    assert engine.views == (one,)


def test_who_keeps_a_restored_view_takes_it_over() -> None:
    """A snapshot keeps the views of whoever had them; when these come back and go, nobody does."""
    first = Engine()
    first.step([*total("fanduel", 220.5, 1.95, None), *total("draftkings", 220.5, None, 1.95)], MOMENT)
    first.view(keep=True)
    engine = Engine()
    snapshot.restore(engine, snapshot.dump(first))
    (view,) = engine.views
    assert engine.view(keep=True) is view
    assert engine.view(keep=True).kept == 2
    view.release()
    view.release()
    engine.step([], MOMENT + timedelta(hours=1))
    assert not engine.views


def times(view: View, kind: str) -> dict[str, datetime]:
    return dict(getattr(view.opportunities(), kind).select("id", "detected_at").rows())


@few(4)
@given(SEEDS, st.sampled_from(ASKED))
def test_views_of_equal_conditions_agree_on_when_an_opportunity_was_detected(seed: int, words: dict[str, Any]) -> None:
    """However late one of them begins, and whatever its conditions for other kinds are."""
    engine = Engine()
    early = engine.view(**words, keep=True)
    for _, _ in tape(feed(seed), engine, 4):
        pass
    now = engine.now
    for kind, other in zip(KINDS, ("min_profit", "max_hold", "min_ev", "min_profit"), strict=True):
        detected = times(early, kind)
        assert times(engine.view(**{**words, "kinds": [kind]}), kind) == detected
        assert times(engine.view(**{**words, other: 1.5}), kind) == detected
        own = {"ev": "min_ev", "arbitrage": "min_profit", "low_hold": "max_hold", "middles": "min_middle_ev"}[kind]
        assert set(times(engine.view(**{**words, own: 3.0}), kind).values()) <= {now}
    early.close()
    assert times(early, "ev") == times(engine.view(**{**words, "kinds": ["ev"]}), "ev")


def test_a_wider_view_may_stand_in_where_it_is_kept() -> None:
    engine = Engine()
    usual, other = engine.view(keep=True), engine.view(min_ev=2.0)
    assert engine.view(kinds=["ev"], wider=True) is usual
    assert engine.view(kinds=["ev"], wider=True, min_ev=2.0) is not other  # it may be suspended
    assert engine.view(kinds=["ev"], wider=True, books=["fanduel"]).wanted.kinds == ("ev",)
    assert engine.view(kinds=["ev"]).wanted.kinds == ("ev",)


@pytest.mark.parametrize("kinds", [[], ["arbs"], "arbs", ["ev", "edges"]])
def test_a_kind_that_nobody_knows_is_refused(kinds: Any) -> None:
    with pytest.raises(ValueError, match="kinds must be a list of ev, arbitrage, low_hold, middles, got"):
        Engine().view(kinds=kinds)


# ---- batches may be cut anywhere ----


@few(2)
@given(SEEDS, st.lists(st.integers(0, 10_000), max_size=6), st.sampled_from([0.0, 0.3, 7.0]))
def test_one_batch_or_many(seed: int, cuts: list[int], later: float) -> None:
    """The same quotes in order, in one batch or in many that end at the same time."""
    said = feed(seed, pauses=(1.0,))
    quotes, ids = said.first().quotes, dict[tuple[Any, ...], str]()
    for _ in range(8):
        quotes = quotes + said.step(ids).quotes
    last = said.now
    quotes = [quote | {"last_seen_at": min(quote["last_seen_at"] or last, last)} for quote in quotes]
    one, many = Engine(), Engine()
    views = opened(one), opened(many)
    one.step(quotes, moment(last + round(later * SECOND)))
    ends = sorted({cut % (len(quotes) + 1) for cut in cuts} | {0, len(quotes)})
    for at, (start, end) in enumerate(pairwise(ends), 1):
        share = 1.0 if end == len(quotes) else at / len(ends)
        many.step(quotes[start:end], moment(last + round(share * later * SECOND)))
    assert_frame_equal(one.table().sort("row_id"), many.table().sort("row_id"))
    assert one.rejected_counts() == many.rejected_counts()
    for first, second in zip(*views, strict=True):
        assert first.ids() == second.ids()
    same_frames(views[0][1].opportunities(), views[1][1].opportunities())


# ---- a snapshot and the updates after it ----

FIGURES = {
    "ev": ("ev_percentage", "fair_probability", "market_width", "unconfirmed"),
    "arbitrage": ("profit_percent", "implied_total", "unconfirmed"),
    "low_hold": ("hold_percentage", "unconfirmed"),
    "middles": ("expected_value", "middle_probability", "unconfirmed"),
}
SEEN_ONLY = ("last_seen_at", "confirmed", "momentum")  # what is not sent again where only it moves


class Client:
    """Holds a snapshot, and hears what is new."""

    def __init__(self, engine: Engine, view: View) -> None:
        self.view = view
        self.rows = rows_of(engine)
        self.open = {kind: set(ids) for kind, ids in view.ids().items()}

    def hear(self, update: Update) -> None:
        for row in update.changed.iter_rows(named=True):
            known = row["id"] in self.rows
            assert row["new"] != known
            held = self.rows.get(row["id"], row)
            assert row["price_moved"] or row["new"] or held["odds_decimal"] == row["odds_decimal"]
            assert row["liveness_moved"] or row["new"] or held["is_live"] == row["is_live"]
            assert row["status_moved"] or row["new"] or held["is_active"] == row["is_active"]
            self.rows[row["id"]] = {name: row[name] for name in oe.ODDS_SCHEMA if name not in ("id", *SEEN_ONLY)}
        for ident in update.removed["id"]:
            self.rows.pop(ident, None)
        if change := update.views.get(self.view):
            for kind, held_open in self.open.items():
                new, moved, gone = change.ids(kind, new=True), change.ids(kind, new=False), change.expired_ids(kind)
                assert not held_open & set(new)
                assert held_open >= set(moved)
                assert held_open >= set(gone)
                self.open[kind] = held_open - set(gone) | set(new)

    def check(self, engine: Engine) -> None:
        assert self.rows == rows_of(engine)
        assert {kind: sorted(ids) for kind, ids in self.open.items()} == self.view.ids()


def rows_of(engine: Engine) -> dict[str, dict[str, Any]]:
    """The rows of a board by our ids, without what updates do not tell."""
    rows = engine.table().drop("id", *SEEN_ONLY).iter_rows(named=True)
    return {row.pop("row_id"): row for row in rows}


class WireClient:
    """The same from what crosses the wire."""

    def __init__(self, engine: Engine, view: View) -> None:
        self.view = view
        self.rows = rows_of(engine)
        self.open = figures_of(view)

    def hear(self, update: Update) -> None:
        said = msgspec.json.decode(update.json(self.view))
        assert said == msgspec.json.decode(msgspec.json.encode(update.plain(self.view)))
        for row in said["new"] + said["changed"]:
            for name in ("odds_changed_at", "event_start_time"):
                if row.get(name):
                    row[name] = datetime.fromisoformat(row[name])
        for row in said["new"]:
            assert row["id"] not in self.rows
            self.rows[row["id"]] = dict.fromkeys(oe.ODDS_SCHEMA) | row
        for row in said["changed"]:
            self.rows[row["id"]] |= row
        for ident in said["removed"]:
            self.rows.pop(ident, None)
        for ident in said.get("expired", ()):
            del self.open[ident]
        for found in said.get("detected", ()):
            since = self.open[found["id"]][-1] if found["id"] in self.open else moment(update.now)
            assert datetime.fromisoformat(found["detected_at"]) == since
            figures = [found[name] for name in FIGURES[found["kind"]]]
            legs = [(leg["sportsbook"], leg["odds_decimal"]) for leg in found["legs"]]
            self.open[found["id"]] = (found["kind"], figures, legs, since)

    def check(self, engine: Engine) -> None:
        known = rows_of(engine)
        assert self.rows.keys() == known.keys()
        for ident, row in known.items():
            held = self.rows[ident]
            told = {name: row[name] for name in row if name not in (*LINKS, "flap", "rejected_upstream")}
            assert {name: held[name] for name in told} == told
        open_now = figures_of(self.view)
        assert self.open.keys() == open_now.keys()
        for ident, (kind, figures, legs, since) in open_now.items():
            assert self.open[ident][0] == kind
            assert self.open[ident][1] == pytest.approx(figures, rel=1e-9, abs=1e-9, nan_ok=True)
            told_of = sorted(self.open[ident][2])
            assert told_of == sorted(legs)
            assert self.open[ident][3] == since


def figures_of(view: View) -> dict[str, tuple[str, list[float], list[tuple[str, float]], datetime]]:
    """What is open by id: kind, figures, legs, first detection."""
    found = view.opportunities()
    out = {}
    for kind in KINDS:
        for row in getattr(found, kind).iter_rows(named=True):
            out[row["id"][-16:]] = (kind, [row[name] for name in FIGURES[kind]], legs_of(kind, row), row["detected_at"])
    return out


def legs_of(kind: str, row: Mapping[str, Any]) -> list[tuple[str, float]]:
    if kind == "ev":
        return [(row["sportsbook"], row["odds_decimal"])]
    if kind == "arbitrage":
        return [(leg["sportsbook"], leg["odds_decimal"]) for leg in row["legs"]]
    if kind == "low_hold":  # the leg of a side is the first book at its price
        sides = [row[name] for name in ("side1", "side2", "side3") if row[name]]
        return [(side["books"][0], side["odds_decimal"]) for side in sides]
    return [(row[name]["sportsbook"], row[name]["odds_decimal"]) for name in ("side1", "side2")]


@few(3)
@given(SEEDS)
def test_a_snapshot_and_the_updates_after_it(seed: int) -> None:
    engine = Engine()
    views = opened(engine)
    said = feed(seed)
    steps = tape(said, engine, 8)
    next(steps)
    clients = [kind(engine, view) for kind in (Client, WireClient) for view in views[1:4]]
    for _, update in steps:
        for client in clients:
            client.hear(update)
    for client in clients:
        client.check(engine)


def seen_again(book: str, over: float, under: float, age: float = 0.0) -> list[dict[str, Any]]:
    """One book's total as quotes, last seen some seconds before the step."""
    return [
        {
            "sportsbook": book, "event_id": "e1", "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
            "away_team": "Miami Heat", "market_type": "total_points", "selection": side, "line": 220.5,
            "odds_decimal": odds, "last_seen_at": NIGHT - timedelta(seconds=age), "is_live": False,
        }
        for side, odds in (("Over", over), ("Under", under))
    ]  # fmt: skip


NIGHT = datetime(2026, 2, 8, 18, tzinfo=UTC)


def equal_now(engine: Engine, view: View) -> oe.Opportunities:
    """What is open, after a check that a table of the same prices holds the same."""
    held = view.opportunities()
    with whatever_is_found():
        same_frames(held, oe.find_all(engine.table(), now=engine.moment))
    return held


@pytest.mark.parametrize("more", ["", "de"])
def test_a_price_in_doubt_is_confirmed_by_a_second_observation(more: str) -> None:
    """Also where so many books quote its other side that this one is too low for a reference."""
    engine = Engine()
    view = engine.view(keep=True)
    under = [seen_again(book, 2.0, 1.75)[1] for book in more]
    engine.step(seen_again("a", 2.6, 1.5) + seen_again("b", 2.1, 1.755) + seen_again("c", 2.11, 1.75) + under, NIGHT)
    arb = equal_now(engine, view).arbitrage
    assert arb["unconfirmed"].to_list() == [True]
    engine.step(seen_again("a", 2.6, 1.5), NIGHT + timedelta(seconds=5))  # the source said nothing new
    assert equal_now(engine, view).arbitrage["unconfirmed"].to_list() == [True]
    update = engine.step(seen_again("a", 2.6, 1.5, -10), NIGHT + timedelta(seconds=10))
    again = equal_now(engine, view).arbitrage
    assert (again["id"].to_list(), again["unconfirmed"].to_list()) == (arb["id"].to_list(), [False])
    said = [found for found in update.plain(view)["detected"] if found["kind"] == "arbitrage"]
    assert [found["unconfirmed"] for found in said] == [False]


def test_legs_drift_apart_and_meet_again_by_time_alone() -> None:
    engine = Engine()
    view = engine.view(keep=True)
    a, b = (2.1, 1.75), (1.75, 2.1)
    engine.step(seen_again("a", *a) + seen_again("b", *b), NIGHT)
    for seconds, found in ((300, True), (301, False), (400, False)):
        engine.step(seen_again("a", *a, -seconds), NIGHT + timedelta(seconds=seconds))
        assert equal_now(engine, view).arbitrage.height == found
    engine.step(seen_again("b", *b, -390), NIGHT + timedelta(seconds=401))
    assert equal_now(engine, view).arbitrage.height == 1


def test_a_witness_falls_silent_by_time_alone() -> None:
    engine = Engine()
    view = engine.view(keep=True)
    engine.step([q for book in "bcd" for q in seen_again(book, 1.8, 2.0)], NIGHT)
    states = []
    for seconds in (601, 1201, 3600, 3601):
        engine.step(seen_again("a", 2.6, 1.5, -seconds), NIGHT + timedelta(seconds=seconds))
        equal_now(engine, view)
        states.append(engine.rejected_counts().get("outlier", 0))
    assert states == [2, 2, 2, 0]
