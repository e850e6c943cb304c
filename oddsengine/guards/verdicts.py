"""Guards: which prices are rejected before detection, and why.

The guards run in the documented order. Each guard sees the prices that the guards before it accepted, judges all of
them, and only then rejects any, so the order of rows cannot matter. A verdict depends only on the quoted prices of all
books in the ladders of one event, live flag, period and family, which are a contest. q = 1 / odds; the logit of q is
-log(odds - 1). The thresholds are in `catalog/guards.toml`.

`survey` judges every price by itself and lists the few places that the others visit. A row is rejected if `reason` is
the code of a guard; `measure` is the value that guard measured, else nan.

Witnesses: a price that `stale` rejected still counts in medians for a while, with `witness_weight` up to twice the
age at which it became stale and `witness_weight_old` after that.
"""

from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import NONE, Bytes, Floats, Int, Ints, Longs
from oddsengine.guards.judgement import GuardCodes, GuardTraits, Limits, PriceFacts, RowVerdicts, guard_codes, limits_of
from oddsengine.guards.main_markets import mark_main_lines
from oddsengine.guards.other_providers import Tally, Voices, bias, conflicts, crossings, doubts, outliers
from oddsengine.guards.own_prices import duplicates, exact, flaps, ladders_reversed, one_team, sums
from oddsengine.guards.single_prices import PriceCodes, reasons_alone, times_of
from oddsengine.guards.survey import PLACES, listed_places, survey
from oddsengine.identity.groups import Groups
from oddsengine.identity.table_identity import Identity, times
from oddsengine.identity.traits import Traits
from oddsengine.tables.schema import OddsTable


class Verdicts(NamedTuple):
    """Verdicts on the rows of `Groups`."""

    reason: Bytes  # code of the guard that rejected the row, or 0
    measure: Floats  # the value that guard measured
    not_reference: Bytes  # 1: too low to be a reference, though usable as an offer
    doubt: Bytes  # 1: an opportunity that uses the price is unconfirmed
    now: int  # microseconds, or NO_TIME if no row has a time
    limits: catalog.Thresholds


class Scratch(NamedTuple):
    """Uncleared arrays, which each guard uses from new."""

    lists: Longs  # lists of places, a row each; then, per ladder, the first of its contest
    ints: Ints  # per book: two columns, a row each
    longs: Longs  # four
    floats: Floats  # four
    opponents: Bytes  # books by providers
    gaps: Floats  # per row
    user: Floats  # of the one user that has all books: a row per book, then five
    main: Bytes  # per market: 1 for the main line of its ladder


def _scratch(groups: Groups, books: int) -> Scratch:
    return Scratch(
        lists=np.empty((PLACES + 1, groups.rows.size), np.int64),
        ints=np.empty((2, books), np.int32),
        longs=np.empty((4, books), np.int64),
        floats=np.empty((4, books)),
        opponents=np.empty((books, books), np.uint8),
        gaps=np.empty(groups.odds.size),
        user=np.empty((books + 5, 1)),
        main=np.empty(groups.threshold.size, np.uint8),
    )


@kernel
def _find_main(plain: Longs, groups: Groups, reason: Bytes, scratch: Scratch) -> None:
    """Mark the main lines of some ladders among the accepted prices of all books.

    - `plain`: the ladders
    - `reason`: as in `RowVerdicts`
    """
    books = scratch.longs.shape[1]
    wanted, work = scratch.user[:books], scratch.user[books:]
    stamp, main_line, no_counts = scratch.longs[0], scratch.longs[1][:1], groups.ladder[:0]
    wanted[:] = 1.0
    stamp[:] = NONE
    scratch.main[:] = 0
    mark_main_lines(
        plain, groups, groups.odds, reason, wanted, stamp, work, main_line, scratch.main, no_counts
    )  # fmt: skip


@kernel
def _run(
    groups: Groups, traits: GuardTraits, facts: PriceFacts, on: GuardCodes, now: Int, limits: Limits,
    verdicts: RowVerdicts, scratch: Scratch,
) -> None:  # fmt: skip
    """Run the guards that are enabled, in their order, each where the survey says that it may find something.

    - `on`: the guards that are enabled
    - `now`: microseconds, or `NO_TIME`
    """
    contest = scratch.lists[PLACES][: groups.markets.size]
    longs, floats, provider = scratch.longs, scratch.floats, traits.provider
    low_sums = floats[3]
    for k in range(provider.size):
        low_sums[k] = limits.low_sum_exchange if traits.exchange[k] != 0 else limits.low_sum
    found = survey(groups, traits, facts, on, now, limits, low_sums, verdicts, contest, scratch.lists)
    places = listed_places(scratch.lists, found)
    voices = Voices(scratch.ints[0], scratch.ints[1], floats[0], floats[1])
    if on.mid_price_source != ACCEPTED and places.exact.size > 0:
        exact(places.exact, contest, groups, limits, on.mid_price_source, verdicts, longs[0], longs[1])
    if on.duplicate_outcome != ACCEPTED and places.repeats.size > 0:
        duplicates(places.repeats, groups, limits, on.duplicate_outcome, verdicts)
    if on.ladder != ACCEPTED and places.reversals.size > 0:
        ladders_reversed(places.reversals, groups, limits, on.ladder, verdicts, floats[0], floats[1], floats[2])
    if on.internal_conflict != ACCEPTED and places.repeats.size > 0:
        conflicts(places.repeats, groups, provider, limits, on.internal_conflict, verdicts, voices)
    if on.book_sum != ACCEPTED and places.sums.size > 0:
        sums(places.sums, groups, limits, on.book_sum, verdicts, low_sums, longs[0], floats[0], floats[1])
    if on.one_team_lines != ACCEPTED and places.team_totals.size > 0:
        one_team(
            places.team_totals, contest, groups, limits, on.one_team_lines, verdicts, longs[0], longs[1], longs[2],
            longs[3],
        )  # fmt: skip
    if on.ladder_cross != ACCEPTED and places.crossings.size > 0:
        crossings(
            places.crossings, groups, provider, limits, on.ladder_cross, verdicts, scratch.opponents, longs[0],
            longs[1],
        )  # fmt: skip
    if on.bias != ACCEPTED and places.props.size > 0:
        tally = Tally(floats[2], longs[0], longs[1], longs[2], longs[3])
        bias(places.props, contest, groups, provider, limits, on.bias, verdicts, voices, tally, scratch.gaps)
    if on.outlier != ACCEPTED and places.spreads.size > 0:
        _find_main(places.plain, groups, verdicts.reason, scratch)
        outliers(places.spreads, groups, provider, scratch.main, limits, on.outlier, verdicts, voices)
    if on.few_witnesses != ACCEPTED and places.spreads.size > 0:
        _find_main(places.plain, groups, verdicts.reason, scratch)
        doubts(places.spreads, groups, provider, scratch.main, limits, facts.confirmed, verdicts, voices)
    if on.flap != ACCEPTED and places.flaps.size > 0:
        flaps(places.flaps, groups, facts.flap, on.flap, verdicts)


def judge(
    groups: Groups, traits: Traits, start: Longs, flap: Bytes, confirmed: Bytes, off: frozenset[int], now: int,
    limits: catalog.Thresholds,
) -> Verdicts:  # fmt: skip
    """Run every enabled guard over all rows of some groups.

    Ladders of one event, live flag and kind must be passed together; leaving out others changes no verdict.

    Parameters
    ----------
    groups, traits
        The rows, and the properties of their kinds and books.
    start
        Start of the row's event: microseconds, or `NO_TIME`.
    flap
        1 for a price that keeps leaving a value and returning to it.
    confirmed
        1 for a price confirmed by a second observation.
    off
        Codes of disabled guards.
    now
        Microseconds, or `NO_TIME`, with which no price has an age.
    limits
        The thresholds.
    """
    n, books = groups.odds.size, traits.provider.size
    verdicts = RowVerdicts(
        reason=np.empty(n, np.uint8),
        measure=np.empty(n),
        witness=np.empty(n),
        not_reference=np.zeros(n, np.uint8),
        doubt=np.zeros(n, np.uint8),
    )
    read = GuardTraits(
        traits.lined, traits.prop, traits.team, traits.full_game, traits.provider, traits.exchange, traits.mid,
        traits.parlay,
    )  # fmt: skip
    _run(
        groups, read, PriceFacts(start, flap, confirmed), guard_codes(off), now,
        limits_of(limits), verdicts, _scratch(groups, books),
    )  # fmt: skip
    return Verdicts(verdicts.reason, verdicts.measure, verdicts.not_reference, verdicts.doubt, now, limits)


def alone(
    traits: Traits, book: Ints, live: Bytes, seen: Longs, start: Longs, off: frozenset[int], now: int,
    limit: catalog.Thresholds,
) -> Bytes:  # fmt: skip
    """Codes of the guards that reject prices regardless of other prices, else 0; `book` as in `Groups`."""
    on, limits = guard_codes(off), limits_of(limit)
    codes = PriceCodes(on.stale, on.started_not_live, on.mid_price_source, on.parlay_only)
    prematch = times_of(now, limits.stale, limits.full_weight, limits.witness, codes)
    in_play = times_of(now, limits.stale_live, limits.full_weight_live, limits.witness_live, codes)
    out = np.empty(book.size, np.uint8)
    reasons_alone(
        seen, start, live, traits.mid[book], traits.parlay[book], prematch.seen, in_play.seen, prematch.start, codes,
        out,
    )  # fmt: skip
    return out


def guard(
    table: OddsTable, identity: Identity, off: frozenset[int], now: int, limits: catalog.Thresholds | None = None
) -> Verdicts:
    """Run every enabled guard over the rows of a table that have a market.

    Parameters
    ----------
    table, identity
        A checked table and the result of `identity.table_identity.identify`.
    off
        Codes of disabled guards.
    now
        Microseconds, or `NO_TIME`, with which no price has an age.
    limits
        The thresholds; None means those of the catalog.
    """
    row = identity.groups.row
    start = times(table, "event_start_time")[row]
    rejected = table["rejected_upstream"].to_numpy()[row]
    flap, confirmed = (
        table[name].to_numpy()[row].astype(np.uint8) if table[name].any() else np.zeros(row.size, np.uint8)
        for name in ("flap", "confirmed")
    )
    limits = limits or catalog.thresholds()
    found = judge(identity.groups, identity.traits, start, flap, confirmed, off, now, limits)
    return apply_rejections(found, rejected, off)


def apply_rejections(guarded: Verdicts, rejected: Bytes, off: frozenset[int]) -> Verdicts:
    """Also reject prices that the upstream node rejected (not 0) and no guard here did.

    That node has seen more: books that it does not pass on, and earlier prices.
    """
    code = CODES["upstream"]
    if code not in off and rejected.any():
        guarded.reason[(rejected != 0) & (guarded.reason == 0)] = code
    return guarded
