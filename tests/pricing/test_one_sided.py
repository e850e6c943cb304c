"""One-sided prices: the twin on generated boards, and the laws of their fair price."""

import math
import random
import tomllib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import close as naive_close
from naive import one_sided as naive
from naive.devig import power
from polars.testing import assert_frame_equal
from support.one_sided import BOOKS, NOW, Row, market, quotes_of, row, rows_of
from support.rows import whatever_is_found

import oddsengine as oe
from oddsengine import catalog
from oddsengine.catalog.reasons import CODES
from oddsengine.detection import opportunity_ids
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import Question, ask, prepare
from oddsengine.pricing import close_table
from oddsengine.pricing.one_sided import ONE_SIDED

PARAMS = tomllib.loads((Path(oe.__file__).parent / "catalog" / "fair.toml").read_text(encoding="utf-8"))
SEEDS = st.integers(0, 2**32 - 1)
SOFT = ("fanduel", "draftkings", "betmgm", "caesars", "bovada")


def asked(rows: Sequence[Row], *include: str, table: catalog.FairTable | None = None, guards: Any = ()) -> Question:
    prepared = prepare(pl.DataFrame(rows, infer_schema_length=None), guards, NOW)
    return ask(prepared, None, None, None, None, thresholds(), include=include, fair=table)


def estimates(question: Question) -> dict[tuple[str, str, int], tuple[float, float, set[str]]]:
    """By book, player and side: fair probability, standard error and flags; without those that have none."""
    v, table = question.prices, question.table
    assert v.close is not None
    g = v.groups
    se = v.close.errors(g, np.arange(g.row.size))
    out = {}
    for at in np.flatnonzero(~np.isnan(v.close.row)).tolist():
        said = table.row(int(g.row[at]), named=True)
        key = said["sportsbook"], said["player_name"], int(g.side[at])
        out[key] = float(v.close.row[at]), float(se[at]), set(close_table.named(v.close.flags[at]))
    return out


def plain() -> catalog.FairTable:
    """The constants without what flags take off an edge."""
    table = catalog.fair_table()
    return table._replace(scale=(1.0,) * len(table.scale))


# ---- the twin ----


def known_books() -> naive_close.Books:
    known, of = {name: catalog.book(name) for name in BOOKS}, PARAMS["sharp"]
    usual = {name: of["exchange"] if b.exchange else of["other"] if b.sharp else 0.0 for name, b in known.items()}
    return naive_close.Books(
        provider={name: b.feed or name for name, b in known.items()},
        sharp={name: of["books"].get(name, usual[name]) for name in known},
        own={name: PARAMS["books"]["own"].get(name, 1.0) for name in known},
        exchange=frozenset(),
    )


@settings(max_examples=max(30, settings().max_examples))
@given(SEEDS, st.sampled_from([8.0, None]))
def test_it_is_its_twin(seed: int, hours: float | None) -> None:
    rng = random.Random(seed)
    quotes = quotes_of(rng)
    rows = [each for q in quotes for each in rows_of(q.book, q.market, q.odds, hours=hours)]
    if not rows:
        return
    refused = {(q.book, q.market) for q in quotes if not q.usable}
    prepared = prepare(pl.DataFrame(rows, infer_schema_length=None), [], NOW)
    g = prepared.identity.groups
    for at, where in enumerate(g.row.tolist()):
        if (rows[where]["sportsbook"], rows[where]["player_name"]) in refused:
            prepared.guarded.reason[at] = CODES["book_sum"]
    found = estimates(ask(prepared, None, None, None, None, thresholds(), include=["one_sided"], fair=plain()))
    before = estimates(ask(prepared, None, None, None, None, thresholds(), fair=plain()))

    books, known = known_books(), naive.samples(quotes, known_books(), PARAMS)
    start = None if hours is None else NOW.timestamp() + 3600.0 * hours
    minute = (
        close_table.minutes(opportunity_ids.hash_texts(["e"]), round(NOW.timestamp() * 1e6), catalog.fair_table())[0]
        / 1e6
    )
    then = naive_close.Moment(minute, start, False, None, [0.0, 0.0])
    se = naive_close.standard_error(then, PARAMS, "nfl")
    for player in {q.market for q in quotes}:
        here = [q for q in quotes if q.market == player and q.usable]
        whole, more = list[naive_close.Price](), list[naive_close.Price]()
        errors = dict[str, float]()
        for q in here:
            if q.side is None:
                whole.append(naive_close.Price(q.book, 0.5, q.odds, NOW.timestamp(), None))  # type: ignore[arg-type]
            elif (made := naive.completed(q, known, books, PARAMS)) is not None:
                more.append(naive_close.Price(q.book, 0.5, made[0], NOW.timestamp(), None))
                errors[q.book] = made[1]
        for q in here:
            judge: Any = (q.book, 0.5, NOW.timestamp(), then, books, PARAMS)
            usual = naive_close.fair(whole, *judge) if whole else None
            expected = usual
            if usual is None and more:
                expected = naive_close.fair([*whole, *more], *judge)
            for side, odds in enumerate(q.odds):
                key = q.book, player, side
                if odds is None or expected is None:
                    assert key not in found
                    continue
                p, error, flags = found[key]
                assert p == pytest.approx(expected[side], rel=1e-8)
                assert ("one_sided" in flags) == (usual is None)
                if usual is not None:
                    assert found[key][0] == before[key][0]
                    assert found[key][2] == before[key][2]
                    continue
                votes = {
                    books.provider[price.book]: price
                    for price in sorted([*whole, *more], key=lambda price: price.book, reverse=True)
                    if naive_close.adds_up(price, PARAMS) and books.provider[price.book] != books.provider[q.book]
                }
                logits = [naive.logit(price.odds) for price in votes.values()]
                margins = [errors.get(price.book, 0.0) for price in votes.values()]
                assert error == pytest.approx(naive.own_error(logits, margins, se, PARAMS), rel=1e-7)


# ---- laws and worked numbers ----

PLAYERS = (0.30, 0.36, 0.40, 0.44, 0.48, 0.52)


def board(
    total: float = 1.06, books: Sequence[str] = SOFT, one: Sequence[tuple[str, float]] = (), **said: Any
) -> list[Row]:
    """Players whom all books quote on both sides, with one book sum; and one whose yes some books quote, at odds."""
    rows = [
        each
        for at, p in enumerate(PLAYERS)
        for book in books
        for each in rows_of(book, f"Player {at}", market(p, total), **said)
    ]
    return rows + [row(book, "Yes Man", 0, odds, **said) for book, odds in one]


def test_a_worked_example() -> None:
    """Margins of 6 % everywhere: 2.50 is 40 % with a margin of 6 %, the other side 1 / (1.06 - 0.4) = 1.515."""
    rows = board(one=[("fanduel", 2.5), ("draftkings", 2.5), ("betmgm", 2.8)])
    found = estimates(asked(rows, "one_sided", table=plain()))
    p = power([2.5, 1.0 / 0.66])[0]
    assert p == pytest.approx(0.3660, abs=1e-4)
    own = 0.2 * 1.5 / (4.0 + 2.0)  # BetMGM's own price, whose margin is removed in the same way, has this weight
    x = naive.logit([2.5, 1.0 / 0.66])
    mine = naive.logit([2.8, 1.0 / (1.06 - 1.0 / 2.8)])
    expected = 1.0 / (1.0 + math.exp(-x - own * (mine - x)))
    assert found["betmgm", "Yes Man", 0][0] == pytest.approx(expected, abs=1e-6)
    assert found["betmgm", "Yes Man", 0][2] == {"one_sided", "thin", "unmeasured"}


def test_a_hidden_side_at_the_usual_margin_changes_nothing() -> None:
    """What is estimated without the other side is what is estimated with it, if the margin is as elsewhere."""
    there = [(book, *market(p, 1.06)) for book, p in zip(SOFT, (0.36, 0.37, 0.38, 0.39, 0.40), strict=True)]
    whole = board() + [each for book, *odds in there for each in rows_of(book, "Yes Man", odds)]
    cut = board(one=[(book, yes) for book, yes, _ in there])
    full, hidden = estimates(asked(whole, table=plain())), estimates(asked(cut, "one_sided", table=plain()))
    for book in SOFT:
        assert hidden[book, "Yes Man", 0][0] == pytest.approx(full[book, "Yes Man", 0][0], abs=1e-6)
        assert hidden[book, "Yes Man", 0][1] > full[book, "Yes Man", 0][1]  # and is less certain


@pytest.mark.parametrize("side", [0, 1])
def test_a_margin_is_that_of_the_book_itself(side: int) -> None:
    """A book's own two-sided prices count more than those of others."""
    rows = [
        each
        for at in range(30)
        for book, total in (("fanduel", 1.04), ("draftkings", 1.08))
        for each in rows_of(book, f"Player {at}", market(0.4, total))
    ]
    yes = {"fanduel": 1.04, "draftkings": 1.08, "betmgm": 1.06}
    rows += [row(book, "Yes Man", side, market(0.4, total)[side]) for book, total in yes.items()]
    found = estimates(asked(rows, "one_sided", table=plain()))
    expected = 0.6 if side else 0.4
    assert found["betmgm", "Yes Man", side][0] == pytest.approx(expected, abs=0.0015)
    assert found["fanduel", "Yes Man", side][0] == pytest.approx(expected, abs=0.0015)


def test_a_book_that_never_quotes_no_takes_what_it_takes_beside_others() -> None:
    """Its margin is learnt where two others quote both sides; with that of others, 40 % would be taken for 45 %."""
    rows = [
        each
        for at in range(30)
        for book, odds in (
            ("fanduel", market(0.4, 1.05)), ("draftkings", market(0.4, 1.05)),
            ("betmgm", (market(0.4, 1.15)[0], None)), ("caesars", (market(0.4, 1.15)[0], None)),
        )
        for each in rows_of(book, f"Player {at}", odds)
    ]  # fmt: skip
    yes = market(0.4, 1.15)[0]
    rows += [row(book, "Yes Man", 0, yes) for book in ("betmgm", "caesars", "bovada")]
    found = estimates(asked(rows, "one_sided", table=plain()))
    assert found["bovada", "Yes Man", 0][0] == pytest.approx(0.4, abs=0.01)
    assert power([yes, 1.0 / (1.05 - 1.0 / yes)])[0] > 0.44


@given(SEEDS)
def test_a_board_of_whole_markets_has_the_same_rows(seed: int) -> None:
    rng = random.Random(seed)
    rows = [
        each
        for at in range(rng.randint(1, 5))
        for book in rng.sample(BOOKS, rng.randint(1, 6))
        for each in rows_of(book, f"Player {at}", market(rng.uniform(0.2, 0.7), rng.uniform(1.0, 1.1)))
    ]
    with whatever_is_found():
        without, including = (oe.find_ev(rows, min_ev=-50.0, include=words, now=NOW) for words in ((), ("one_sided",)))
    assert_frame_equal(without, including)


@given(SEEDS)
def test_rows_are_added_and_none_changes(seed: int) -> None:
    rows = [each for q in quotes_of(random.Random(seed)) for each in rows_of(q.book, q.market, q.odds)]
    if not rows:
        return
    with whatever_is_found():
        found = [oe.find_ev(rows, min_ev=-50.0, include=words, guards=[], now=NOW) for words in ((), ("one_sided",))]
    usual, more = found
    added = more.filter(pl.col("flags").list.contains("one_sided"))
    rest = more.filter(~pl.col("flags").list.contains("one_sided"))
    assert usual.height + added.height == more.height
    assert_frame_equal(usual.sort("row"), rest.sort("row"))
    kept = added.filter(pl.col("ev_percentage") > 0.0)
    assert (kept["ev_error"] > 0.0).all()
    assert (kept["kelly_shrunk"] < kept["kelly_percent"]).all()
    assert (kept["independent_books"] >= 1).all()


def test_nothing_is_estimated_in_play() -> None:
    one = [("fanduel", 2.5), ("draftkings", 2.5), ("betmgm", 2.9)]
    assert any("one_sided" in flags for *_, flags in estimates(asked(board(one=one), "one_sided")).values())
    found = estimates(asked(board(one=one, live=True), "one_sided"))
    assert found
    assert not any("one_sided" in flags for *_, flags in found.values())


def test_without_like_prices_there_is_no_estimate() -> None:
    """Nothing is learnt from prices far away, from another event, or from fewer than three."""
    one = [("fanduel", 2.5), ("draftkings", 2.5), ("betmgm", 2.9)]
    for rows in (
        board(one=[("fanduel", 30.0), ("draftkings", 30.0), ("betmgm", 34.0)]),
        [*board(event="other"), *board(books=(), one=one)],
        [*rows_of("fanduel", "Player 0", market(0.4, 1.05)), *board(books=(), one=one)],
        board(books=(), one=one),
    ):
        assert ("betmgm", "Yes Man", 0) not in estimates(asked(rows, "one_sided"))


def test_other_kinds_of_market_tell_nothing() -> None:
    one = [("fanduel", 2.5), ("draftkings", 2.5), ("betmgm", 2.9)]
    elsewhere = [each | {"market_type": "player_receptions"} for each in board()]
    assert ("betmgm", "Yes Man", 0) not in estimates(asked([*elsewhere, *board(books=(), one=one)], "one_sided"))


def test_a_book_whose_other_side_is_refused_is_not_one_sided() -> None:
    """Whatever is wrong with it: its price may be, too."""
    one = [("fanduel", 2.5), ("draftkings", 2.5), ("betmgm", 2.9)]
    rows = board(one=one)
    assert ("betmgm", "Yes Man", 0) in estimates(asked(rows, "one_sided"))
    old = row("draftkings", "Yes Man", 1, 1.5) | {"last_seen_at": NOW - timedelta(hours=1)}
    found = estimates(asked([*rows, old], "one_sided", guards=["stale"]))
    assert ("betmgm", "Yes Man", 0) not in found


def test_of_two_prices_of_a_book_the_lower_one_counts() -> None:
    one = [("fanduel", 2.5), ("draftkings", 2.5), ("betmgm", 2.7)]
    once = estimates(asked(board(one=one), "one_sided"))
    twice = estimates(asked(board(one=[*one, ("fanduel", 2.55), ("draftkings", 2.6)]), "one_sided"))
    assert twice["betmgm", "Yes Man", 0] == once["betmgm", "Yes Man", 0]


def test_sister_books_have_one_vote_on_what_a_margin_is() -> None:
    def estimate(*books: str) -> float:
        p = {"betonline": 0.36, "lowvig": 0.361, "fanduel": 0.4, "bovada": 0.42}
        rows = [
            each
            for at in range(6)
            for book in ("betonline", "fanduel", "bovada", *books)
            for each in rows_of(book, f"Player {at}", market(p[book], 1.05))
        ]
        rows += [row(book, f"Player {at}", 0, 2.3) for at in range(6) for book in ("betmgm", "caesars")]
        rows += [row(book, "Yes Man", 0, 2.3) for book in ("betmgm", "caesars", "draftkings")]
        return estimates(asked(rows, "one_sided"))["draftkings", "Yes Man", 0][0]

    # LowVig counts among all books, but its price is no other opinion of what BetMGM's would be without a margin.
    assert estimate("lowvig") == pytest.approx(estimate(), abs=1e-4)


def test_one_other_book_is_not_enough() -> None:
    found = estimates(asked(board(one=[("fanduel", 2.5), ("betmgm", 2.9)]), "one_sided"))
    assert ("betmgm", "Yes Man", 0) not in found
    # Sister books are one.
    found = estimates(asked(board(one=[("betonline", 2.5), ("lowvig", 2.5), ("betmgm", 2.9)]), "one_sided"))
    assert ("betmgm", "Yes Man", 0) not in found


def test_the_error_grows_with_what_is_not_known() -> None:
    def error(totals: Sequence[float]) -> float:
        rows = [
            each
            for at, total in enumerate(totals)
            for book in SOFT
            for each in rows_of(book, f"Player {at}", market(0.38, total))
        ]
        rows += [row(book, "Yes Man", 0, 2.5) for book in SOFT]
        return estimates(asked(rows, "one_sided"))["betmgm", "Yes Man", 0][1]

    steady, wild = error([1.06] * 12), error([1.01, 1.11] * 6)
    assert error([1.06] * 2) > steady  # ten samples say less than sixty
    assert wild > 1.3 * steady
    unknown = estimates(asked(board(one=[(book, 2.5) for book in SOFT], hours=None), "one_sided"))
    assert unknown["betmgm", "Yes Man", 0][1] > PARAMS["confidence"]["unknown_se"]


def test_rows_say_what_they_are() -> None:
    rows = board(one=[("pinnacle", 2.4), ("fanduel", 2.5), ("draftkings", 2.5), ("betmgm", 2.75)])
    frame = oe.find_ev(rows, include=["one_sided"], now=NOW)
    bet = frame.row(by_predicate=pl.col("player_name") == "Yes Man", named=True)
    assert (bet["sportsbook"], bet["sharp_book"], bet["independent_books"]) == ("betmgm", "pinnacle", 3)
    assert "one_sided" in bet["flags"]
    assert bet["ev_low"] < 0.0 < bet["ev_percentage"] < bet["ev_high"]
    assert 0.0 < bet["kelly_shrunk"] < bet["kelly_percent"]
    assert not oe.find_ev(rows, now=NOW).filter(player_name="Yes Man").height
    assert int(ONE_SIDED) == 1 << catalog.EV_FLAGS.index("one_sided")
