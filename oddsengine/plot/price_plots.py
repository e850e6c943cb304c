"""Plots of prices: a market over time, its ladder of lines, and the board of an event."""

import textwrap
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import cycle, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.past_prices import (
    ambiguous,
    changes,
    described,
    listed,
    newest,
    outcomes,
    rows_of,
    rows_of_event,
    with_ends,
    with_line,
    with_market,
    with_selection,
)
from oddsengine.columns import Floats
from oddsengine.detection.fair import FAIR_COLUMNS
from oddsengine.detection.finders import fair
from oddsengine.detection.result_columns import bet
from oddsengine.identity.raw_labels import SIDES
from oddsengine.plot.figure import (
    BLUE,
    COLORS,
    GREEN,
    GREY,
    ORANGE,
    STYLES,
    legend,
    neutral,
    new_figure,
    plain,
    set_time,
)
from oddsengine.tables.frames import IntoFrame
from oddsengine.tables.schema import OddsWarning, check_odds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKET = ("event_id", "market_type", "player_name", "team_side")
_MOST_TIMES = 200  # at which the fair price is computed
_MOST_ROWS = 40  # of a board
_LEGEND = "decimal odds; filled: best price after commission, green: above fair; grey italics: rejected by a guard"


# ---- one market over time ----


def movement(
    history: Any,
    event: str,
    market: str,
    *,
    selection: str | None = None,
    line: float | None = None,
    sportsbook: str | Iterable[str] | None = None,
    live: bool = False,
) -> "Figure":
    """Plot the price of one outcome at every book over time, with the fair price.

    Gaps are suspensions; dots are the closing prices, at the start of the event. The fair price is the median of those
    that `fair` estimates for the books, each from all the others.

    Parameters
    ----------
    history
        As for `price_history`: a tape or its folder, a frame, a lazy query or a path.
    event, market
        As for `price_history`: an event by id or words of its name, a market type by any of its names.
    selection
        The outcome: "away", "under", a team, a player and a side. None is the home team, over or yes.
    line
        The line from the outcome's own side. None is the one that most books quote at the end.
    sportsbook
        The books to draw; None is all.
    live
        Draw the prices during the event instead of those before it.

    Returns
    -------
    matplotlib.figure.Figure
        One axes with a line for each book, by label; the legend is in order of the last price.

    Raises
    ------
    ValueError
        If the history has nothing of that name, or several markets, such as those of several players; the message lists
        what it has.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> books = ["pinnacle", "fanduel", "betmgm", "caesars"]
    >>> world = oe.World(7, events=2, live=0.0, tick=300.0, books=books)
    >>> quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(3600) for quote in batch.quotes]
    >>> history = pl.DataFrame(quotes, infer_schema_length=None)
    >>> figure = oe.plot.movement(history, history["event_id"][0], "moneyline")
    >>> sorted(drawn.get_label() for drawn in figure.axes[0].get_lines() if drawn.get_label()[0] != "_")
    ['BetMGM', 'Caesars', 'FanDuel', 'Pinnacle', 'fair']
    """
    quotes = with_market(described(rows_of(history, event)), market)
    prices = changes(with_ends(quotes)).filter(is_live=live)
    starts = quotes["event_start_time"].drop_nulls()
    begins: Any = None if live or starts.is_empty() else starts[-1]  # as last seen: it may have been postponed
    if begins is not None:
        prices = prices.filter(pl.col("recorded_at") <= begins)
    if prices.is_empty():
        when, other = ("during", "before") if live else ("before", "during")
        raise ValueError(f"{event!r} has no {market!r} prices {when} the event; live={not live} draws those {other} it")
    of = _outcome(prices, market, selection, line)
    last: Any = quotes.filter(is_live=True)["recorded_at"].max() if live else quotes["recorded_at"].max()
    closes = begins is not None and last >= begins
    end = begins if closes else last
    mine = of.market.join(of.rows, on=of.rows.columns, how="semi", nulls_equal=True, maintain_order="left")
    mine = mine.filter(pl.col("sportsbook").is_in(_books(mine, sportsbook)))
    figure = new_figure(9.5, 5.0)
    axes = figure.subplots()
    plain(axes)
    each = mine.partition_by("sportsbook", "row", as_dict=True).items()
    drawn = [(str(book), *_steps(part, end)) for (book, _), part in each]
    drawn.sort(key=lambda one: (-np.nan_to_num(one[2][-1]), one[0]))
    at, odds = _fair_path(of, end)
    if at.size:
        axes.step(at, odds, where="post", color=neutral(), linewidth=2.2, label="fair", zorder=3)
    edge: Any = _times(of.market["recorded_at"].head(0), end)[0]
    for (book, times, path), (style, color) in zip(drawn, cycle(product(STYLES, COLORS)), strict=False):
        entry = catalog.book(book)
        axes.step(
            times, path, where="post", color=color, linestyle=style, linewidth=2.0 if entry.sharp else 1.1,
            label=entry.name,
        )  # fmt: skip
        if closes and not np.isnan(path[-1]):
            axes.plot(edge, path[-1], "o", color=color, markersize=5, label="_close", clip_on=False)
    if closes:
        axes.axvline(edge, color=GREY, linestyle="--", linewidth=1.0, label="_start")
        axes.annotate(
            "close", (edge, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
            ha="center", va="bottom", color=GREY, fontsize="small",
        )  # fmt: skip
    axes.set_title(f"{of.event}\n{of.kind}{', live' if live else ''}: {of.name}", loc="left", fontsize="medium")
    axes.set_ylabel("decimal odds")
    set_time(axes)
    legend(axes)
    return figure


class _Outcome(NamedTuple):
    """One outcome, and the rows of its market at its line."""

    event: str
    kind: str
    name: str
    side: str
    rows: pl.DataFrame
    market: pl.DataFrame


def _outcome(prices: pl.DataFrame, market: str, selection: str | None, line: float | None) -> _Outcome:
    """Choose the outcome that a selection and a line mean."""
    rows = _one_market(with_selection(prices, selection), market)
    sides = sorted(rows["selection_type"].drop_nulls().unique().to_list(), key=_order)
    if not sides or (selection is not None and len(sides) > 1):
        raise ambiguous("selection", selection, outcomes(rows))
    rows = with_line(rows.filter(selection_type=sides[0]), line)
    line = _main_line(rows) if line is None else line
    whole = prices.join(rows.select(_MARKET).unique(), on=_MARKET, how="semi", nulls_equal=True, maintain_order="left")
    if line is not None:
        rows = rows.filter(line=line)
        whole = whole.filter(_at_line(line, sides[0]))
    last = rows.row(-1, named=True)
    return _Outcome(last["event_name"], _spoken(last["market_type"]), _outcome_name(last), sides[0], rows, whole)


def _one_market(rows: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """Return the rows if all are of one market, of any line."""
    found = rows.select(*_MARKET, "home_team", "away_team").unique(_MARKET, maintain_order=True)
    if found.height > 1:
        raise ambiguous("market", name, (_market_name(row) for row in found.iter_rows(named=True)))
    return rows


def _market_name(row: dict[str, Any]) -> str:
    who = row["player_name"] or _team(row)
    return f"{_spoken(row['market_type'])} of {who}" if who else _spoken(row["market_type"])


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _team(row: dict[str, Any]) -> str | None:
    teams: dict[str | None, str | None] = {"home": row["home_team"], "away": row["away_team"]}
    return teams.get(row["team_side"], row["team_side"])


def _outcome_name(row: dict[str, Any]) -> str:
    """Name an outcome alike for all books: its team or side, with the line."""
    side = row["selection_type"] or row["selection"]
    name = {"home": row["home_team"], "away": row["away_team"]}.get(side) or str(side).capitalize()
    return bet(name, row["line"], row["player_name"], _team(row))


def _order(side: str) -> int:
    return SIDES.index(side) if side in SIDES else len(SIDES)


def _main_line(rows: pl.DataFrame) -> float | None:
    """Return the line that most books quote at the end, of several the one closest to even money."""
    last = rows.group_by("line", "sportsbook", maintain_order=True).last().filter("is_active").drop_nulls("line")
    lines = last.group_by("line").agg(pl.len(), uneven=(1.0 / pl.col("odds_decimal") - 0.5).abs().median())
    if lines.is_empty():
        lines = rows.drop_nulls("line").select("line")
        return None if lines.is_empty() else float(lines["line"][-1])
    return float(lines.sort("len", "uneven", "line", descending=[True, False, False])["line"][0])


def _line_of(side: str) -> pl.Expr:
    """Return the line of each row from one side of its market: both sides of a total have the same."""
    line, other = pl.col("line"), pl.col("selection_type")
    return pl.when(other.is_in(["home", "away"]) & (other != side)).then(-line).otherwise(line)


def _at_line(line: float, side: str) -> pl.Expr:
    """Whether rows are of a line from one side of their market."""
    return (_line_of(side) - line).abs() < 1e-9


def _books(rows: pl.DataFrame, wanted: str | Iterable[str] | None) -> list[str]:
    books = rows["sportsbook"].unique().to_list()
    if wanted is None:
        return books
    ids = {catalog.book(name).id for name in ([wanted] if isinstance(wanted, str) else wanted)}
    some = [book for book in books if catalog.book(book).id in ids]
    if not some:
        raise ValueError(f"none of {listed(sorted(ids))} quotes this; {listed(sorted(books))} do")
    return some


Times = npt.NDArray[np.datetime64]


def _times(column: pl.Series, end: datetime) -> Times:
    """Return times and the end in the form that matplotlib draws as UTC."""
    return np.append(column.to_numpy(), np.datetime64(end.astimezone(UTC).replace(tzinfo=None), "us"))


def _steps(rows: pl.DataFrame, end: datetime) -> tuple[Times, Floats]:
    """Return the times and prices of one book's changes, up to the end; nan while suspended."""
    odds = np.where(rows["is_active"].to_numpy(), rows["odds_decimal"].to_numpy(), np.nan)
    return _times(rows["recorded_at"], end), np.append(odds, odds[-1])


def _fair_path(of: _Outcome, end: datetime) -> tuple[Times, Floats]:
    """Return the fair odds of an outcome over time, nan while there are none; empty if there never are."""
    moments = of.market["recorded_at"].unique().sort()
    at = np.unique(np.linspace(0, moments.len() - 1, min(moments.len(), _MOST_TIMES)).astype(int))
    times = moments[at].to_frame().with_row_index("moment")
    keys = of.market.select("row").unique(maintain_order=True)
    state = (
        times.join(keys, how="cross")
        .sort("recorded_at")
        .join_asof(of.market, on="recorded_at", by="row", check_sortedness=False)
        .filter("is_active")
        # Each moment is an event of its own: one call estimates all of them.
        .with_columns(event_id=pl.col("moment").cast(pl.String))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OddsWarning)  # there is no fair price: none is drawn
        priced = fair(state.drop("recorded_at", "event_start_time", "row"))
    median = (
        priced.filter(selection_type=of.side).group_by("moment").agg(odds=1.0 / pl.col("fair_probability").median())
    )
    odds = times.join(median, on="moment", how="left", maintain_order="left")["odds"].fill_null(np.nan).to_numpy()
    if np.isnan(odds).all():
        return np.empty(0, "M8[us]"), np.empty(0)
    return _times(times["recorded_at"], end), np.append(odds, odds[-1])


# ---- one board ----


def ladder(odds: IntoFrame, event: str | None = None, market: str | None = None) -> "Figure":
    """Plot the probability of one side of a market by line: the fair one, and the best offers on both sides.

    The side is over, or the home team. Backing it at the best price pays if the fair probability is above its offer;
    backing the other side, if it is below that side's. The shaded gap between the offers is the hold.

    Parameters
    ----------
    odds
        Prices of one market with lines, one per row; see `ODDS_SCHEMA`. Others can be in it if the next parameters say
        which market is meant.
    event
        An event by its id or words of its name.
    market
        A market type by any of its names, such as "totals".

    Returns
    -------
    matplotlib.figure.Figure
        One axes: the fair probability with one standard error, the offers, and each book's price as a dot.

    Raises
    ------
    ValueError
        If there is no such market, it has no lines, or there are several; the message lists what there is.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> figure = oe.plot.ladder(oe.read_odds(SAMPLE_BOARD), "bills chiefs", "spread")
    >>> figure.axes[0].get_xlabel()
    'line of Kansas City Chiefs'
    """
    rows = _priced(odds, event)
    if rows["event_id"].n_unique() > 1:
        raise ambiguous("event", event, rows["event_name"].to_list())
    rows = with_market(rows, market)
    lined = rows.drop_nulls("line")
    if lined.is_empty():
        raise ValueError(
            f"a ladder needs a market with lines; there are {listed(map(_market_name, rows.iter_rows(named=True)))}"
        )
    lined = _one_market(lined.filter(is_live=lined["is_live"][0]), market)
    sides = sorted(lined["selection_type"].drop_nulls().unique().to_list(), key=_order)
    if len(sides) < 2:
        raise ValueError(f"a ladder needs both sides of a market; there is only {listed(sides)}")
    first = pl.col("selection_type") == sides[0]
    team = sides[0] in ("home", "away")
    p, implied = pl.col("fair_probability"), 1.0 / pl.col("net_odds")
    usable = pl.col("guard").is_null()
    points = lined.with_columns(
        line=_line_of(sides[0]),
        fair=pl.when(first).then(p).otherwise(1.0 - p),
        offer=pl.when(first).then(implied).otherwise(1.0 - implied),
    )
    by_line = (
        points.group_by("line")
        .agg(
            pl.col("fair").median(),
            pl.col("fair_error").median().alias("error"),
            pl.col("offer").filter(first, usable).min().alias("over"),
            pl.col("offer").filter(~first, usable).max().alias("under"),
        )
        .sort("line")
    )
    at = by_line["line"].to_numpy()
    middle, error, over, under = (
        100.0 * by_line[name].fill_null(np.nan).to_numpy() for name in ("fair", "error", "over", "under")
    )
    last = lined.row(0, named=True)
    home, away = last["home_team"] or "home", last["away_team"] or "away"
    side, other = (home, away) if team else tuple(name.capitalize() for name in sides[:2])
    figure = new_figure(8.4, 4.8)
    axes = figure.subplots()
    plain(axes)
    axes.fill_between(at, under, over, color=GREY, alpha=0.18, linewidth=0, label="hold between the best offers")
    axes.plot(at, over, "v-", color=ORANGE, linewidth=1.2, markersize=5, label=f"best offer on {side}")
    axes.plot(at, under, "^-", color=GREEN, linewidth=1.2, markersize=5, label=f"best offer on {other}")
    axes.errorbar(
        at, middle, np.nan_to_num(error), fmt="o-", color=BLUE, linewidth=1.8, markersize=4, capsize=3,
        label="fair, one standard error",
    )  # fmt: skip
    offers = points.filter(usable)
    axes.scatter(
        offers["line"], 100.0 * offers["offer"], s=9, color=neutral(), alpha=0.35, linewidths=0,
        label="prices of books", zorder=1,
    )  # fmt: skip
    axes.set_title(f"{last['event_name']}\n{_market_name(last)}", loc="left", fontsize="medium")
    axes.set(xlabel=f"line of {home}" if team else "line", ylabel=f"probability of {side}, %")
    legend(axes)
    return figure


def board(odds: IntoFrame, event: str, *, market: str | None = None) -> "Figure":
    """Plot the prices of an event as a table: outcomes by books, the best price of each outcome marked.

    Parameters
    ----------
    odds
        Prices, one per row; see `ODDS_SCHEMA`. Of several with the same raw label, the one last seen is used.
    event
        An event by its id or words of its name.
    market
        A market type by any of its names, with all its lines. None is every market of the full game that is not a prop,
        at the line that most books quote.

    Returns
    -------
    matplotlib.figure.Figure
        One axes with a text in each cell; the last column is the fair price, the median over the books.

    Raises
    ------
    ValueError
        If there is no such event or market, or several events; the message lists what there is.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import oddsengine as oe
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> figure = oe.plot.board(oe.read_odds(SAMPLE_BOARD), "bills chiefs")
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()][:2]
    ['moneyline', 'Kansas City Chiefs']
    """
    rows = _priced(odds, event).drop_nulls("selection_type")
    rows = with_market(rows, market)
    if market is None:
        rows = rows.filter(pl.col("player_name").is_null() & (pl.col("market_segment") == catalog.FULL_GAME))
        rows = _at_main_lines(rows)
    if rows.is_empty():
        raise ValueError(f"{event!r} has no main market; name one with market")
    cells = _cells(rows)
    counts = cells.group_by("sportsbook").agg(pl.col("is_best").sum(), pl.len())
    books = counts.sort("is_best", "len", "sportsbook", descending=[True, True, False])["sportsbook"].to_list()
    labels = _board_rows(cells)
    place = {key: at for at, (key, _) in enumerate(labels) if key is not None}
    column = {book: at for at, book in enumerate(books)}
    fill = np.zeros((len(labels), len(books) + 1, 4))
    figure = new_figure(2.6 + 0.62 * (len(books) + 1), 1.5 + 0.29 * len(labels))
    axes = figure.subplots()
    for cell in cells.iter_rows(named=True):
        y, x = place[_outcome_key(cell)], column[cell["sportsbook"]]
        usable = cell["guard"] is None
        if cell["is_best"]:
            fill[y, x] = _rgba(GREEN if (cell["ev"] or 0.0) > 0.0 else BLUE, 0.35)
        axes.text(
            x, y, _price(cell["odds_decimal"]), ha="center", va="center", fontsize="small",
            weight="bold" if cell["is_best"] else "normal", color=neutral() if usable else GREY,
            fontstyle="normal" if usable else "italic",
        )  # fmt: skip
    for outcome, price in _fair_prices(cells).items():
        axes.text(
            len(books), place[outcome], _price(price), ha="center", va="center", fontsize="small", color=neutral()
        )
    axes.imshow(fill, aspect="auto", interpolation="nearest")
    for y, (key, _) in enumerate(labels):
        if key is None and y:
            axes.axhline(y - 0.5, color=GREY, linewidth=0.6, alpha=0.6)
    axes.axvline(len(books) - 0.5, color=GREY, linewidth=0.6, alpha=0.6)
    names = [catalog.book(book).name for book in books]
    axes.set_xticks(
        range(len(books) + 1), [*names, "fair"], rotation=55, ha="left", rotation_mode="anchor", fontsize="small"
    )
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(labels)), [text for _, text in labels], fontsize="small")
    for label, (key, _) in zip(axes.get_yticklabels(), labels, strict=True):
        label.set_fontweight("normal" if key else "bold")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.suptitle(rows["event_name"][0], x=0.01, ha="left", fontsize="medium", weight="bold")
    longest = max(len(text) for _, text in labels)
    room = int((figure.get_figwidth() - 0.075 * longest) / 0.058)  # characters of the legend beside the longest name
    axes.set_xlabel(textwrap.fill(_LEGEND, max(room, 22)), fontsize="x-small", color=GREY, loc="left")
    return figure


_OUTCOME = ("market_type", "player_name", "team_side", "is_live", "line", "selection_type")


def _priced(odds: IntoFrame, event: str | None) -> pl.DataFrame:
    """Return the rows of one event with fair prices, markets and outcomes named alike for all books."""
    rows = rows_of_event(pl.DataFrame(check_odds(odds)).drop(FAIR_COLUMNS, strict=False), event)
    if not rows.height:
        raise ValueError("there are no valid prices")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OddsWarning)  # offers are drawn without fair prices too
        return described(fair(newest(rows)))


def _at_main_lines(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of each market at the line that most books quote."""
    of_market = ("market_type", "team_side", "is_live")
    parts = []
    for part in rows.partition_by(of_market, maintain_order=True):
        sides = sorted(part["selection_type"].unique().to_list(), key=_order)
        line = _main_line(part.filter(pl.col("guard").is_null(), selection_type=sides[0]))
        parts.append(part.filter(pl.col("line").is_null() if line is None else _at_line(line, sides[0])))
    return pl.concat(parts) if parts else rows


def _cells(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one price of each book for each outcome, and whether it is the best of all books."""
    usable = pl.col("guard").is_null()
    each = rows.sort(usable, "net_odds", descending=True, nulls_last=True).unique(
        [*_OUTCOME, "sportsbook"], keep="first", maintain_order=True
    )
    best = pl.col("net_odds").filter(usable).max().over(_OUTCOME)
    return each.with_columns(is_best=(usable & (pl.col("net_odds") == best)).fill_null(value=False))


def _outcome_key(cell: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in _OUTCOME)


def _board_rows(cells: pl.DataFrame) -> list[tuple[tuple[Any, ...] | None, str]]:
    """Return the rows of a board in order: a heading for each market, which has no key, and its outcomes."""
    found = {_outcome_key(row): row for row in cells.iter_rows(named=True)}

    def rank(row: dict[str, Any]) -> tuple[Any, ...]:
        kind = str(row["market_type"])
        first = next(
            (at for at, word in enumerate(("moneyline", "spread", "line", "handicap", "total")) if word in kind), 9
        )
        side = _order(row["selection_type"])
        away = row["selection_type"] == "away"
        line = row["line"] or 0.0
        return (
            row["is_live"],
            _order(row["team_side"]) if row["team_side"] else -1,
            first,
            kind,
            row["player_name"] or "",
            -line if away else line,
            side,
        )

    out: list[tuple[tuple[Any, ...] | None, str]] = []
    heading = ""
    for row in sorted(found.values(), key=rank):
        name = _market_name(row) + (", live" if row["is_live"] else "")
        if name != heading:
            out.append((None, name))
            heading = name
        out.append((_outcome_key(row), _outcome_name(row)))
    if len(out) > _MOST_ROWS:
        raise ValueError(
            f"the board has {len(out)} rows, at most {_MOST_ROWS} can be read; name a market, or pass fewer prices"
        )
    return out


def _fair_prices(cells: pl.DataFrame) -> dict[tuple[Any, ...], float]:
    median = cells.group_by(_OUTCOME).agg(odds=1.0 / pl.col("fair_probability").median()).drop_nulls("odds")
    return {_outcome_key(row): row["odds"] for row in median.iter_rows(named=True)}


def _price(odds: float) -> str:
    return f"{odds:.2f}" if odds < 10.0 else f"{odds:.1f}" if odds < 100.0 else f"{odds:.0f}"


def _rgba(color: str, alpha: float) -> tuple[float, ...]:
    return (*(int(color[at : at + 2], 16) / 255.0 for at in (1, 3, 5)), alpha)
