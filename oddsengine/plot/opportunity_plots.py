"""Plots of opportunities: the EV of every price, how long opportunities last, and stakes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.past_prices import listed
from oddsengine.bounds import excerpt
from oddsengine.columns import Floats
from oddsengine.detection.fair import FAIR_COLUMNS
from oddsengine.detection.finders import fair
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.result_columns import bet, total_team
from oddsengine.plot.figure import BLUE, COLORS, RED, SKY, legend, neutral, new_figure, plain
from oddsengine.staking.stakes import Portfolio
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import check_odds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOW, _HIGH, _WIDTH = -20.0, 40.0, 1.0  # %: the EVs drawn where they are, and the width of a bar
_MOST_BETS = 40
_WIDEST = 44  # characters of a line of a bet's name


def edges(odds: IntoFrame, *, books: Iterable[str] | None = None) -> "Figure":
    """Plot the EV of every price: of those that can be bet, and of those that guards reject.

    The EV of a rejected price is that at the fair price of the others. Most of the plot is the books' margin.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`.
    books
        Draw the prices of these books, by id, name or alias; None is all. Fair prices are those of the whole table.

    Returns
    -------
    matplotlib.figure.Figure
        One axes with the number of prices by EV, on a logarithmic scale.

    Raises
    ------
    ValueError
        If no price of these books has a fair price.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> figure = oe.plot.edges(oe.read_odds(SAMPLE_BOARD))
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['1,847 can be bet', '56 rejected by guards']
    """
    table = check_odds(odds)
    priced = fair(pl.DataFrame(table).drop(FAIR_COLUMNS, strict=False)).drop_nulls("fair_probability")
    if books is not None:
        ids = {catalog.book(name).id for name in ([books] if isinstance(books, str) else books)}
        quoted = priced["sportsbook"].unique().to_list()
        priced = priced.filter(pl.col("sportsbook").is_in([book for book in quoted if catalog.book(book).id in ids]))
        if priced.is_empty():
            raise ValueError(
                f"no price of {listed(sorted(ids))} has a fair price; those of {listed(sorted(quoted))} do"
            )
    if priced.is_empty():
        raise ValueError("no price has a fair price")
    usable = pl.col("guard").is_null()
    percent = 100.0 * (pl.col("fair_probability") * pl.coalesce("net_odds", "odds_decimal") - 1.0)
    inside = pl.when(usable).then(100.0 * pl.col("ev")).otherwise(percent).clip(_LOW, _HIGH - _WIDTH / 2)
    priced = priced.filter(
        ~usable | pl.col("ev").is_not_null()
    )  # others are not compared: suspended, or too far apart in time
    parts = [priced.filter(which).select(inside).to_series().to_numpy() for which in (usable, ~usable)]
    figure = new_figure(9.0, 4.2)
    axes = figure.subplots()
    names = (f"{parts[0].size:,} can be bet", f"{parts[1].size:,} rejected by guards")
    axes.hist(
        parts, np.arange(_LOW, _HIGH + _WIDTH, _WIDTH).tolist(), stacked=True, color=[SKY, RED], label=list(names)
    )
    axes.axvline(0.0, color=neutral(), linewidth=1.0)
    who = "all books" if books is None else f"{priced['sportsbook'].n_unique()} books"
    plain(axes, f"EV of every price of {who}")
    axes.set(yscale="log", ylim=(0.7, None), xlim=(_LOW, _HIGH), ylabel="prices")
    axes.set_xlabel("EV, % of the stake (what is beyond an end is drawn there)")
    axes.yaxis.set_major_formatter("{x:g}")
    legend(axes)
    return figure


def lifetimes(scan: IntoFrame, *, minutes: float | None = None) -> "Figure":
    """Plot how long opportunities last: the share of each kind that is still there, by time since it opened.

    An opportunity that is still open at the end of the history counts until then (Kaplan and Meier's estimate).

    Parameters
    ----------
    scan
        Result of `scan_history`, filtered as you like.
    minutes
        The time to draw; None is until one in fifty is left.

    Returns
    -------
    matplotlib.figure.Figure
        One axes with a line for each kind.

    Raises
    ------
    ValueError
        If `minutes` is not above 0, or there are no opportunities.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> world = oe.World(7, events=4, live=0.0, tick=300.0, books=["pinnacle", "fanduel", "betmgm", "caesars"])
    >>> quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(3 * 3600) for quote in batch.quotes]
    >>> scan = oe.scan_history(pl.DataFrame(quotes, infer_schema_length=None), kinds=["ev", "middles"])
    >>> figure = oe.plot.lifetimes(scan)
    >>> [text.split(",")[0] for text in figure.axes[0].get_legend_handles_labels()[1]]
    ['+EV', 'middles']
    """
    if minutes is not None and not minutes > 0.0:
        raise ValueError(f"minutes must be above 0, got {excerpt(minutes)}")
    rows = to_polars(scan)
    if missing := [name for name in ("kind", "born_at", "died_at") if name not in rows.columns]:
        raise ValueError(f"lifetimes needs a result of scan_history; the table has no {', '.join(missing)}")
    if rows.is_empty():
        raise ValueError("there are no opportunities")
    end = pl.max_horizontal(pl.col("born_at").max(), pl.col("died_at").max())
    lived = rows.select(
        "kind",
        ended=pl.col("died_at").is_not_null(),
        minutes=(pl.coalesce("died_at", end) - pl.col("born_at")).dt.total_microseconds() / 60e6,
    )
    if minutes is None:
        minutes = float(lived["minutes"].quantile(0.98) or 0.0) or 1.0
    figure = new_figure(8.4, 4.2)
    axes = figure.subplots()
    plain(axes, "Opportunities that are still there")
    for kind, color in zip(KINDS, COLORS, strict=False):
        part = lived.filter(kind=kind)
        if part.height:
            at, share = _survival(part["minutes"].to_numpy(), part["ended"].to_numpy())
            label = f"{KINDS[kind].plural}, {part.height:,}"
            axes.step(at, 100.0 * share, where="post", color=color, linewidth=1.8, label=label)
    axes.set(xlabel="minutes since it opened", ylabel="still there, %", xlim=(0.0, minutes), ylim=(0.0, 103.0))
    legend(axes)
    return figure


def _survival(lived: Floats, ended: np.ndarray) -> tuple[Floats, Floats]:
    """Return Kaplan and Meier's times and shares, from 1 at time 0; those that did not end leave without a fall."""
    at = np.unique(lived)
    open_at = np.array([(lived >= time).sum() for time in at], float)
    ends = np.array([((lived == time) & ended).sum() for time in at], float)
    share = np.cumprod(1.0 - ends / open_at)
    return np.concatenate([[0.0], at]), np.concatenate([[1.0], share])


def stakes(portfolio: Portfolio) -> "Figure":
    """Plot the stakes of a portfolio beside those of each bet on its own.

    Parameters
    ----------
    portfolio
        Result of `kelly_portfolio`. Bets without a stake, alone or together, are left out.

    Returns
    -------
    matplotlib.figure.Figure
        One axes with two bars for each bet, in percent of the bankroll. Alone is the Kelly stake by the same
        probabilities and fraction, without limits.

    Raises
    ------
    ValueError
        If there is no bet with a stake, or too many to be read.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> bets = oe.find_ev(oe.read_odds(SAMPLE_BOARD), min_ev=2)
    >>> figure = oe.plot.stakes(oe.kelly_portfolio(bets, bankroll=1000, fraction=0.25))
    >>> figure.axes[0].get_xlabel()
    'stake, % of the bankroll'
    """
    bets = portfolio.bets.filter((pl.col("stake_fraction") > 0.0) | (pl.col("kelly_fraction") > 0.0))
    if bets.is_empty():
        raise ValueError("the portfolio has no bet with a stake")
    if bets.height > _MOST_BETS:
        raise ValueError(f"the portfolio has {bets.height} bets, at most {_MOST_BETS} can be read; filter them first")
    bets = bets.sort(pl.col("kelly_fraction", "stake_fraction").round(9), descending=True, maintain_order=True)
    names = [_bet_name(row) for row in bets.iter_rows(named=True)]
    place = np.arange(bets.height)
    figure = new_figure(9.5, 1.2 + 0.44 * bets.height)
    axes = figure.subplots()
    plain(axes)
    axes.barh(place - 0.19, 100.0 * bets["kelly_fraction"], 0.38, color=SKY, label="each alone")
    axes.barh(place + 0.19, 100.0 * bets["stake_fraction"], 0.38, color=BLUE, label="together")
    axes.set_yticks(place, names, fontsize="small")
    axes.set_ylim(bets.height - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("stake, % of the bankroll")
    legend(axes)
    return figure


def _bet_name(row: dict[str, Any]) -> str:
    """Name a bet in two lines: the bet and its book, and the event."""
    subject = total_team(row)
    what = bet(str(row["selection"]), row.get("line"), row.get("player_name"), subject)
    home, away = row.get("home_team"), row.get("away_team")
    event = row.get("event_name") or (f"{away} @ {home}" if home and away else str(row["event_id"]))
    book = catalog.book(row["sportsbook"]).name
    return f"{_cut(what)}, {book}\n{_cut(event)}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"
