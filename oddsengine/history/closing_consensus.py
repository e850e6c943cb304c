"""The other books' close: the fair price of an outcome at the start by all books of providers other than its own.

The close of an event is its last snapshot, at most half an hour before the start. A book has one vote, by complete
prices that are at most 15 minutes old, on the judged line or else on its nearest one: de-vigged with `power`, moved to
the judged line if the slope is known, in logits. With five or more votes, the highest and lowest are dropped and the
rest averaged; with four, the median is used; with fewer there is no close, except that of a book which is enough as the
only reference for such markets (`[[alone]]` in `catalog/fair.toml`).

A one-sided price (`pricing.one_sided`) for which too few books quote both sides at the close is graded by the same
rule, with the votes of the books that quote one side then, whose margin is estimated as it is live.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.board.facts import joined
from oddsengine.board.state import Board
from oddsengine.columns import NO_TIME, Floats, Ints, Longs, Words
from oddsengine.detection.question import hashes, prepare
from oddsengine.identity.layout import PartitionColumns
from oddsengine.identity.traits import MarketKind
from oddsengine.pricing import close as fair_close
from oddsengine.pricing import close_table, votes
from oddsengine.pricing.commission import after_commission
from oddsengine.pricing.one_sided import completed, quoted

_VOTE_S = 900
_LEAST = 4


class Vote(NamedTuple):
    """One book's close on a line."""

    threshold: int
    logits: list[float]
    provider: str
    alone: bool  # whether it is enough as the only reference
    book: str


Votes = dict[int, list[Vote]]


def fresh(closes: pl.DataFrame) -> pl.DataFrame:
    """Return the prices that count at the close: those seen shortly before the last snapshot (`snapshot_at`)."""
    return closes.filter(pl.col("last_seen_at").to_physical() > pl.col("snapshot_at") - _VOTE_S * 1_000_000)


def votes_at(closes: pl.DataFrame | None, table: catalog.FairTable, *, one_sided: bool = False) -> Votes:
    """Return the books' closing logits by ladder; `closes` are prices with the last snapshot's time (`snapshot_at`).

    `one_sided`: also of the books that quote one side only.
    """
    if closes is None or not closes.height:
        return {}
    prepared = prepare(fresh(closes).drop("snapshot_at"), [])
    identity, g = prepared.identity, prepared.identity.groups
    none, reason = np.full(g.row.size, NO_TIME), prepared.guarded.reason
    net = after_commission(g, identity.traits)
    book_logits = votes.of_books(g, net, none, reason, int(identity.traits.outcomes.max(initial=2)), table)
    of = close_table.estimator(identity.kinds, identity.sports, identity.books, table)
    if one_sided:
        no_start = np.full(g.event.size, NO_TIME)
        board = fair_close.CloseInput(of, fair_close.Times(none, no_start, no_start), None, book_logits)
        book_logits, _ = completed(
            g, net, book_logits, quoted(g, identity.traits, net, reason, book_logits, board), board
        )
    key = hashes(prepared).ladder
    market = np.repeat(np.arange(g.threshold.size), np.diff(book_logits.start))
    out: Votes = {}
    providers = [catalog.book(b).provider for b in identity.books]
    alone = of.lines.alone[g.kind, of.lines.sport[g.event]]
    for m, b, x in zip(market.tolist(), book_logits.book.tolist(), book_logits.x, strict=True):
        ladder = g.ladder[m]
        is_enough = bool(of.voters.alone[b] & alone[ladder])
        out.setdefault(int(key[ladder]), []).append(
            Vote(int(g.threshold[m]), x.tolist(), providers[b], is_enough, identity.books[b])
        )
    return out


def close_logit(
    votes: list[Vote], provider: str, threshold: int, side: int, outcomes: int, slope: float, reach: int
) -> tuple[float, str]:
    """Return the other books' close of an outcome and its source; nan and empty if there is none."""
    nearest: dict[str, tuple[int, list[float], bool]] = {}  # by book: distance, its logits there, whether it is enough
    for vote in votes:
        away = abs(vote.threshold - threshold)
        if vote.provider == provider or (away and (outcomes > 2 or np.isnan(slope) or away > reach)):
            continue
        if outcomes > 2:
            x = float(vote.logits[side])
        else:
            shift = slope * (threshold - vote.threshold) / 100.0 if away else 0.0
            x = (float(vote.logits[0]) + shift) * (1.0 if side == 0 else -1.0)
        least, logits, _ = nearest.get(vote.book, (away + 1, [], False))
        if away < least:
            nearest[vote.book] = away, [x], vote.alone
        elif away == least:
            logits.append(x)
    votes_ = [sum(logits) / len(logits) for _, logits, _ in nearest.values()]
    enough = [x for x, (_, _, alone) in zip(votes_, nearest.values(), strict=True) if alone]
    votes_.sort()
    if len(votes_) >= _LEAST + 1:
        return sum(votes_[1:-1]) / (len(votes_) - 2), "others"
    if len(votes_) == _LEAST:
        return 0.5 * (votes_[1] + votes_[2]), "others"
    if enough:
        return sum(enough) / len(enough), "sharp"
    return np.nan, ""


class Position(NamedTuple):
    """Where rows of a board are on their ladders."""

    kinds: list[MarketKind]  # by code; only appended to
    kind: Ints
    ladder: Words  # its key
    threshold: Ints
    side: Ints
    outcomes: Longs
    slope: Floats
    reach: Longs
    subject: Ints

    @classmethod
    def of(cls, board: Board, gathered: PartitionColumns, at: Longs, table: catalog.FairTable) -> "Position":
        """The positions of some rows of what was gathered."""
        g, names = gathered.groups, board.names
        lines = names.tables.estimator(table).lines
        market = g.market[at]
        ladder = g.ladder[market]
        kind, sport = g.kind[ladder], lines.sport[g.event[ladder]]
        return cls(
            names.kinds.values, kind, names.hashes(g).ladder[ladder], g.threshold[market], g.side[at],
            g.outcomes[market], lines.slope[kind, sport], lines.reach[kind, sport], g.subject[ladder],
        )  # fmt: skip

    def frame(self) -> pl.DataFrame:
        """As a table: key of the ladder, line, outcome, and the slope of the line."""
        kinds, sides = [self.kinds[k] for k in self.kind.tolist()], self.side.tolist()
        return pl.DataFrame(
            {
                "ladder": self.ladder,
                "threshold_": self.threshold,
                "side": self.side,
                "outcomes": self.outcomes,
                "slope": self.slope,
                "reach": self.reach,
                "family": [kind.family for kind in kinds],
                "subject": self.subject.astype(np.int64).clip(0, 3),  # 1 home, 2 away; 3 a player
                "market": [kind.family.removesuffix("_3way") for kind in kinds],
                "period": [kind.period for kind in kinds],
                "outcome": [kind.outcomes[side] for kind, side in zip(kinds, sides, strict=True)],
                "lined": [kind.has_line for kind in kinds],
            }
        )

    @classmethod
    def frame_of(cls, parts: Iterable["Position"]) -> pl.DataFrame:
        """Positions of several moments, one after the other."""
        runs = joined(parts, lambda part: part.kinds, lambda part: part[1:])
        return pl.concat(cls(first.kinds, *columns).frame() for first, columns in runs)


def closing_logits(prices: pl.DataFrame, votes: Votes) -> pl.DataFrame:
    """Return the close of located prices, `x` in logits of their outcome (nan if unknown), and its source `who`."""
    columns = ("ladder", "threshold_", "side", "outcomes", "slope", "reach")
    providers = {name: catalog.book(name).provider for name in prices["sportsbook"].unique()}
    keys = prices.select("sportsbook", *columns).with_columns(
        provider=pl.col("sportsbook").replace_strict(providers, return_dtype=pl.String) if providers else pl.lit("")
    )
    alike = keys.unique(("provider", *columns), maintain_order=True)
    results = [
        close_logit(votes.get(ladder, []), provider, *where)
        for provider, ladder, *where in alike.select("provider", *columns).iter_rows()
    ]
    made = pl.DataFrame(results, schema={"x": pl.Float64, "who": pl.String}, orient="row")
    made = alike.hstack(made.with_columns(who=pl.col("who").replace("", None)))
    on = ["provider", *columns]
    return keys.join(made.select(*on, "x", "who"), on=on, how="left", nulls_equal=True, maintain_order="left").select(
        "x", "who"
    )


def closing_by_flag(
    prices: pl.DataFrame, closes: pl.DataFrame | None, table: catalog.FairTable, one_sided: pl.Series
) -> pl.DataFrame:
    """Return `closing_logits` of located prices; flagged ones without a close have one by one-sided votes, if any.

    Its source (`who`) is then "one_sided".
    """
    out = closing_logits(prices, votes_at(closes, table))
    without = one_sided & out["x"].is_nan()
    if not without.any():
        return out
    x, at = out["x"].to_numpy().copy(), without.arg_true()
    x[at] = closing_logits(prices[at], votes_at(closes, table, one_sided=True))["x"]
    who = pl.when(without & pl.Series(np.isfinite(x))).then(pl.lit("one_sided")).otherwise("who")
    return out.select(pl.Series("x", x), who.alias("who"))
