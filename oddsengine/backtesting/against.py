"""A model's probabilities beside ours, on the same prices and the same closes.

A model enters as a table: `event_id`, `market_type`, `selection`, `line` and `probability`, that of winning given no
push. Optional are `sportsbook`, for a probability that is meant for the prices of one book only, and `at`, the time
from which it holds: at each snapshot the newest row counts that is not later, first of the price's own book. The names
of price intervals (`event`, `market`, `book`, and `home`, `away`, `over`, `under` or `draw` as a selection) will do. Of
a market of two outcomes, one is enough.

All models are compared on the prices that all of them judge: accepted ones before the start, with odds below 4, that
have a close (`closing_consensus`). Every outcome at a book counts alike, however many snapshots it is in.
"""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.cells import CELLS, cell, weighted_mean, with_error
from oddsengine.backtesting.formats import MARKETS, team_or
from oddsengine.board.facts import Facts
from oddsengine.board.rows import Rows
from oddsengine.board.state import Board
from oddsengine.bounds import excerpt
from oddsengine.catalog import FairTable
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import NO_TIME, Bools, Floats, Ints, Words
from oddsengine.detection.question import prepare
from oddsengine.detection.registered_fair import asked
from oddsengine.fair_functions import Calls, fair_plugin, registered_fair
from oddsengine.history.closing_consensus import Position, closing_logits, votes_at
from oddsengine.identity.layout import LIVE, ON, SUSPENDED
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.pricing import close as fair_close
from oddsengine.pricing.commission import after_commission
from oddsengine.tables.casts import CASTS, TIME
from oddsengine.tables.files import scan_table
from oddsengine.tables.frames import to_polars
from oddsengine.tables.schema import named, warn

OURS = "ours"
_BETWEEN = 60_000_000  # microseconds
_WHERE = ("ladder", "threshold_", "side")
_NEEDED = ("event_id", "market_type", "selection", "probability")
_SIDES = ("home", "draw", "away", "over", "under")
_GAME = ("sport", "league", "home_team", "away_team")


_FIGURES = ("n", "graded", "shown", "worth", "worth_se", "bias", "bias_se", "ratio", "ratio_se", "slope", "slope_se")

AGAINST: dict[str, type[pl.DataType]] = {
    "model": pl.String,
    "observations": pl.Int64,  # prices times snapshots
    "prices": pl.Int64,
    "games": pl.Int64,
    "log_loss": pl.Float64,  # of the close; every outcome at a book counts alike
    "excess": pl.Float64,  # over ours
    "excess_se": pl.Float64,
    **{name: CELLS[name] for name in _FIGURES},
    "on_ours": pl.Float64,  # mean EV by the model of the bets that our fair prices show
}  # fmt: skip
"""Columns of `Audit.against`; the bets are prices when the model first gives them an EV of at least 1."""

RELIABILITY: dict[str, type[pl.DataType]] = {
    "model": pl.String, "band": pl.String, "observations": pl.Int64, "shown": pl.Float64, "worth": pl.Float64,
    "worth_se": pl.Float64,
}  # fmt: skip
"""Columns of `Audit.reliability`."""


class Rival(NamedTuple):
    """A model to compare with."""

    name: str
    table: pl.DataFrame  # event_id, market_type, selection and so on, probability; `at` and `sportsbook` null if unset
    fair: str = ""  # instead of a table: the name of a fair price that a package registers


def read_rivals(given: Any) -> list[Rival]:
    """Read models: a frame, the path of a table, a registered fair price, or several by name.

    Raises `ValueError` for a table without a column it needs, or a probability that is none.
    """
    if given is None:
        return []
    several = given if isinstance(given, Mapping) else {_name(given): given}
    if OURS in several:
        raise ValueError(f"a model cannot be named {OURS!r}")
    return [_rival(str(name), one) for name, one in several.items()]


def _rival(name: str, given: Any) -> Rival:
    plugin = fair_plugin(given) if isinstance(given, str) else None
    if plugin is None:
        return Rival(name, _read(name, given))
    if os.path.exists(given):
        raise ValueError(f"{given!r} is a file here, and {plugin.label}; write ./{given} for the file")
    registered_fair(given)  # raises if it cannot be used
    return Rival(name, pl.DataFrame(), given)


def _name(given: Any) -> str:
    return Path(given).stem if isinstance(given, str | os.PathLike) else "model"


def _read(name: str, given: Any) -> pl.DataFrame:
    if isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        table = scan_table(path, None, infer_schema_length=None, try_parse_dates=True)
        if table is None:
            raise ValueError(
                "a model must be a .csv, .parquet, .ndjson or .jsonl file, or a fair price that a package registers, "
                f"got {excerpt(path)}"
            )
        frame = table.collect()
    else:
        frame = to_polars(given)
    own = frame.select(column for column in ("probability", "at") if column in frame.columns)
    frame = named(frame.drop(own.columns))
    if missing := [column for column in _NEEDED if column not in (*frame.columns, *own.columns)]:
        has = ", ".join((*frame.columns, *own.columns))
        raise ValueError(f"the model {name} has no {', '.join(missing)}; it has {has}")
    at = own["at"] if "at" in own.columns else None
    probability = own["probability"].cast(pl.Float64, strict=False)
    wrong = ~(probability.is_not_null() & (probability > 0.0) & (probability < 1.0))
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        came = f"{own['probability'][row]!r} in row {row}"
        raise ValueError(f"the model {name}: probability must be above 0 and below 1, got {came}")
    frame = frame.with_columns(
        probability,
        *(pl.lit(None, pl.String).alias(n) for n in ("sportsbook", "player_name") if n not in frame.columns),
        *(pl.lit(None, pl.Float64).alias(n) for n in ("line",) if n not in frame.columns),
        at=pl.lit(NO_TIME) if at is None else _times(name, at),
    )
    side = pl.col("selection").cast(pl.String).str.to_lowercase()
    kept = ["event_id", "market_type", "selection", "line", "player_name", "sportsbook", "probability", "at"]
    more = [n for n in (*_GAME, "selection_type", "market_segment", "team_side") if n in frame.columns]
    if "selection_type" not in frame.columns:
        frame = frame.with_columns(selection_type=pl.when(side.is_in(_SIDES)).then(side))
        more.append("selection_type")
    return frame.select(*kept, *more)


def _times(name: str, at: pl.Series) -> pl.Series:
    cast, _ = CASTS[pl.Datetime]
    read = at if at.dtype == TIME else cast(at)
    if read.null_count():
        row = int(read.is_null().arg_max() or 0)
        raise ValueError(f"the model {name}: at must be a time, got {excerpt(at[row])} in row {row}")
    return read.cast(TIME).to_physical()


class PriceObservations:
    """Collects every pre-match price at every snapshot of its event, with our fair probability.

    Of snapshots within a minute, as in tapes of streams, the first counts. With `unjudged`, also prices that are
    suspect, as in an audit, and those that have no fair probability (nan). `fairs` are names of registered fair prices,
    which judge the same prices, each by the accepted ones of its market.
    """

    def __init__(
        self, engine: Engine, hours: float, most_odds: float, *, unjudged: bool = False, fairs: Iterable[str] = ()
    ) -> None:  # fmt: skip
        self._fairs = {name: fair for name in fairs if (fair := registered_fair(name)) is not None}
        self._calls = {name: Calls(fair.method) for name, fair in self._fairs.items()}
        self._engine, self._hours, self._most_odds, self._unjudged = engine, hours, most_odds, unjudged
        self._facts: list[Facts] = []
        self._positions: list[Position] = []
        self._observations: list[pl.DataFrame] = []
        self._met: set[int] = set()
        self._looked_at: dict[int, int] = {}  # by partition

    def follow(self, now: int, update: Update) -> None:
        """Process a step."""
        with self._engine.still() as board:
            rows, names = board.rows, board.names
            slots = np.concatenate((update.facts.slot[update.rows], rows.find(update.again_key)))
            partitions = np.unique(rows.partition[slots[slots >= 0]]).astype(np.int64)
            partitions = partitions[
                (names.partitions.live.values[partitions] == 0) & (board.partitions.size[partitions] > 0)
            ]
            before = np.array([self._looked_at.get(partition, NO_TIME) for partition in partitions.tolist()], np.int64)
            partitions = partitions[(before == NO_TIME) | (now - before >= _BETWEEN)]
            self._looked_at |= dict.fromkeys(partitions.tolist(), now)
            if not partitions.size:
                return
            gathered = board.gather(partitions)
            g, traits = gathered.groups, names.tables.traits
            slots = g.row
            reason = rows.reason[slots]
            read, _ = board.estimated(gathered, reason, slots, self._engine.fair)
            net = after_commission(g, traits)
            gross = fair_close.gross(traits, traits.fees)
            fair = fair_close.estimate(read.of, g, traits, net, reason, gross, read.times, read.momentum, read.logits)
            left = (gathered.start - now) / 3.6e9
            usable = (reason == 0) & ~np.isnan(fair.row)
            if self._unjudged:
                usable = (reason == 0) | (reason == CODES["outlier"])
            pick = (left > 0.0) & (left < self._hours) & usable & (g.odds < self._most_odds)
            pick &= _is_offered(rows, slots)
            at = np.flatnonzero(pick)
            if not at.size:
                return
            ids = rows.id[slots[at]]
            self._observations.append(
                pl.DataFrame(
                    {
                        "price": ids, "t": np.full(at.size, now), "hours": left[at], "net": net[at],
                        "odds": g.odds[at], "ours": fair.row[at],
                    }
                ).with_columns(self._others(board, slots[(reason == 0) & _is_offered(rows, slots)], ids, now))
            )  # fmt: skip
            new = np.flatnonzero([ident not in self._met for ident in ids.tolist()])
            if not new.size:
                return
            self._met.update(ids[new].tolist())
            facts = board.facts(slots[at[new]])
            self._facts.append(facts.take(facts.places(slots[at[new]])))
            self._positions.append(Position.of(board, gathered, at[new], self._engine.fair))

    def _others(self, board: Board, slots: Ints, ids: Words, now: int) -> list[pl.Series]:
        """The probabilities of some prices by the registered fair prices; `slots` are those of the accepted prices."""
        if not self._calls:
            return []
        facts = board.facts(slots)
        prepared = prepare(facts.frame(), guards=[], now=datetime.fromtimestamp(now / 1e6, UTC))
        of_rows = facts.id[prepared.identity.groups.row]
        known = {name: asked(calls, prepared).prob for name, calls in self._calls.items()}
        found = {name: dict(zip(of_rows.tolist(), prob.tolist(), strict=True)) for name, prob in known.items()}
        return [
            pl.Series(fair_column(name), [one.get(ident, np.nan) for ident in ids.tolist()], pl.Float64).fill_nan(None)
            for name, one in found.items()
        ]

    def observed(self) -> "Observed":
        """What was collected; a warning says what registered fair prices had no usable answer for."""
        for name, calls in self._calls.items():
            if said := calls.said():
                warn(f"{self._fairs[name].plugin.label}: {said}")
        if not self._facts:
            return Observed(pl.DataFrame(), pl.DataFrame())
        ids = np.concatenate([facts.id for facts in self._facts])
        where = Position.frame_of(self._positions)
        prices = Facts.frame_of(self._facts).hstack(where).with_columns(price=pl.Series(ids))
        return Observed(prices, pl.concat(self._observations))


def fair_column(name: str) -> str:
    """The column of observations with the probabilities of a registered fair price."""
    return f"fair {name}"


def _is_offered(rows: Rows, slots: Ints) -> Bools:
    """Whether prices are on, and not in play."""
    is_on: Bools = (rows.state[slots] == ON) & ((rows.flags[slots] & (LIVE | SUSPENDED)) == 0)
    return is_on


class Observed(NamedTuple):
    """Prices at every snapshot."""

    prices: pl.DataFrame  # texts and positions on their ladders
    observations: pl.DataFrame  # each price at each snapshot

    @classmethod
    def joined(cls, parts: "Iterable[Observed]") -> "Observed":
        """Those of several parts of a history."""
        some = [part for part in parts if part.prices.height]
        if not some:
            return cls(pl.DataFrame(), pl.DataFrame())
        observations = pl.concat([part.observations for part in some]).sort("t", "price")
        prices = pl.concat([part.prices for part in some]).unique("price", keep="first", maintain_order=True)
        return cls(prices.sort("price"), observations)


def judged(
    collected: Observed, closes: pl.DataFrame | None, rivals: list[Rival], table: FairTable,
    locate: Any,
) -> pl.DataFrame:  # fmt: skip
    """Return the prices at each snapshot that all models judge and that have a close, with a column per model.

    `locate` finds the positions of an odds table's rows on their ladders.
    """
    prices, observations = collected.prices, collected.observations
    if not observations.height:
        return pl.DataFrame()
    closing = closing_logits(prices, votes_at(closes, table))
    prices = prices.with_columns(close=closing["x"], who=closing["who"])
    prices = prices.filter(pl.col("close").is_not_nan() & pl.col("close").is_not_null())
    rows = observations.join(prices, on="price", how="inner", maintain_order="left")
    for rival in rivals:
        found = rows[fair_column(rival.fair)] if rival.fair else _probabilities(rival, rows, prices, locate)
        rows = rows.with_columns(found.alias(f"model {rival.name}"))
    return rows.drop_nulls([f"model {rival.name}" for rival in rivals])


def _probabilities(rival: Rival, rows: pl.DataFrame, prices: pl.DataFrame, locate: Any) -> pl.Series:
    """Return a model's probability of each row at its time; null without one."""
    games = prices.select("event_id", *_GAME).unique("event_id", keep="first", maintain_order=True)
    own = [column for column in _GAME if column in rival.table.columns]
    words = [c for c in rival.table.columns if c not in ("probability", "at", "sportsbook")]
    distinct = rival.table.select(words).unique(maintain_order=True).with_row_index("word")
    asked = distinct.join(games, on="event_id", how="inner", suffix="_of_game", maintain_order="left")
    asked = asked.with_columns(pl.coalesce(column, f"{column}_of_game").alias(column) for column in own)
    teams = pl.col("home_team"), pl.col("away_team")
    asked = asked.with_columns(
        selection=team_or(pl.col("selection_type"), *teams, pl.col("selection")),
        sportsbook=pl.lit("model"),
        odds_decimal=pl.lit(2.0),
        market_type=pl.col("market_type").replace(MARKETS),
    )
    where = asked.select("word").hstack(locate(asked).select(*_WHERE, "outcomes"))
    where = where.filter(pl.col("ladder") != 0)
    reported = rival.table.join(distinct, on=words, how="left", nulls_equal=True, maintain_order="left").join(
        where, on="word"
    )
    reported = reported.select(*_WHERE, "outcomes", "sportsbook", "at", "probability")
    two = reported.filter(pl.col("outcomes") == 2)
    other = two.with_columns(side=1 - pl.col("side"), probability=1.0 - pl.col("probability"))
    reported = pl.concat([reported, other]).unique([*_WHERE, "sportsbook", "at"], keep="first", maintain_order=True)
    reported = reported.drop("outcomes").with_columns(pl.col("side").cast(rows.schema["side"])).sort("at")
    asked_for = rows.select(*_WHERE, "sportsbook", "t").with_row_index("at_row").sort("t")
    books = reported.filter(pl.col("sportsbook").is_not_null())
    every = reported.filter(pl.col("sportsbook").is_null()).drop("sportsbook")
    out = asked_for
    for name, table, by in (("of_book", books, [*_WHERE, "sportsbook"]), ("of_all", every, list(_WHERE))):
        out = out.join_asof(
            table.rename({"probability": name, "at": f"{name}_at"}), left_on="t", right_on=f"{name}_at", by=by,
            strategy="backward", check_sortedness=False,
        )  # fmt: skip
    return out.sort("at_row").select(pl.coalesce("of_book", "of_all")).to_series()


def losses(rows: pl.DataFrame, model: str, truth: str = "close") -> Floats:
    """Return the log loss of a model's probabilities of each row, the probability at the close being the truth.

    Or `truth` names the column of another one, such as 1 for what has won and 0 for what has not.
    """
    p = rows[model].to_numpy()
    q = rows[truth].to_numpy()
    if truth == "close":
        q = 1.0 / (1.0 + np.exp(-q))
    return np.asarray(-q * np.log(p) - (1.0 - q) * np.log1p(-p))


def bets(rows: pl.DataFrame, model: str, least: float) -> pl.DataFrame:
    """Return the first snapshot of each price with an EV of at least `least` percent by a model.

    A column `error MODEL` has standard errors of its probabilities, in logits.
    """
    p, se = pl.col(model), f"error {model}"
    ev = 100.0 * (pl.col(model) * pl.col("net") - 1.0)
    some = rows.filter(ev >= least - 1e-7).sort("t", maintain_order=True)
    first = some.unique([*_WHERE, "sportsbook"], keep="first", maintain_order=True)
    return first.select(
        "price", "t", "odds", "hours", event="event_id", ev=ev,
        worth=100.0 * (pl.col("net") / (1.0 + (-pl.col("close")).exp()) - 1.0),
        error=pl.col("close") - (p / (1.0 - p)).log(), won=pl.lit(None, pl.Float64),
        se=pl.col(se) if se in rows.columns else pl.lit(None, pl.Float64),
    )  # fmt: skip


_BET = 1.0  # %: minimum EV of a bet, in a comparison
_BANDS = (-5.0, -3.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0)


def _band(k: int) -> str:
    """The name of a band of EV."""
    return f"{_BANDS[k - 1]:g}" + (f" to {_BANDS[k]:g}" if k < len(_BANDS) else " or more")


def compare(rows: pl.DataFrame, rivals: list[Rival]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare models on the prices that all of them judge: `AGAINST` and `RELIABILITY`."""
    models = {OURS: OURS, **{rival.name: f"model {rival.name}" for rival in rivals}}
    if not rows.height:
        none = [{"model": name, "observations": 0, "prices": 0, "games": 0, "graded": 0} for name in models]
        return pl.DataFrame(none, schema=AGAINST), pl.DataFrame(schema=RELIABILITY)
    weight = rows.select(1.0 / pl.len().over("ladder", "threshold_", "side", "sportsbook")).to_series().to_numpy()
    game = rows["event_id"].rank("dense").to_numpy().astype(np.int64)
    ours = losses(rows, OURS)
    mine = bets(rows, OURS, _BET)
    table, bands = [], []
    for name, column in models.items():
        theirs = losses(rows, column)
        excess, error = weighted_mean(theirs - ours, weight, game)
        of = rows.join(mine.select("price", "t"), on=["price", "t"], how="semi")
        on_ours = of.select((100.0 * (pl.col(column) * pl.col("net") - 1.0)).mean()).item()
        figures = cell(bets(rows, column, _BET))
        table.append(
            {name: figures.get(name) for name in AGAINST}
            | {
                "model": name,
                "observations": rows.height,
                "prices": rows["price"].n_unique(),
                "games": int(np.unique(game).size),
            }
            | {"log_loss": weighted_mean(theirs, weight, game)[0], "on_ours": on_ours}
            | ({"excess": None, "excess_se": None} if name == OURS else {"excess": excess, "excess_se": error})
        )
        net = rows["net"].to_numpy()
        ev = 100.0 * (rows[column].to_numpy() * net - 1.0)
        worth = 100.0 * (net / (1.0 + np.exp(-rows["close"].to_numpy())) - 1.0)
        band = np.searchsorted(_BANDS, ev, side="right")
        for k in range(1, len(_BANDS) + 1):
            at = np.flatnonzero(band == k)
            if at.size:
                value, value_se = weighted_mean(worth[at], weight[at], game[at])
                bands.append(
                    {"model": name, "band": _band(k), "observations": at.size, "worth": value,
                     "shown": weighted_mean(ev[at], weight[at], game[at])[0], "worth_se": value_se}
                )  # fmt: skip
    return pl.DataFrame(table, schema=AGAINST).fill_nan(None), pl.DataFrame(bands, schema=RELIABILITY).fill_nan(None)


def side_by_side(table: pl.DataFrame, reliability: pl.DataFrame) -> list[str]:
    """Format models as columns of text."""
    if not table.height:
        return []
    models = table.to_dicts()
    first = models[0]
    if not first["observations"]:
        return ["no price has a close and a probability by each model"]
    lines = [("", *(row["model"] for row in models))]
    lines.append(("log loss of the close", *(f"{row['log_loss']:.5f}" for row in models)))
    lines.append(("  over ours", *(with_error(row, "excess", 5) for row in models)))
    lines.append((f"bets, EV >= {_BET:g}", *(str(row["graded"]) for row in models)))
    for name in ("shown", "worth", "bias", "ratio", "slope"):
        lines.append((f"  {name}", *(with_error(row, name) for row in models)))
    lines.append(("EV of our bets", *(with_error(row, "on_ours") for row in models)))
    lines.append(("worth, by EV shown", *("" for _ in models)))
    cells = {(row["model"], row["band"]): row for row in reliability.to_dicts()}
    for band in map(_band, range(1, len(_BANDS) + 1)):
        lines.append((f"  {band}", *(with_error(cells.get((row["model"], band), {}), "worth") for row in models)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    what = f"{first['prices']:,} prices of {first['games']:,} games, {first['observations']:,} times"
    return [f"on {what}, with a probability by each:", *texts]
