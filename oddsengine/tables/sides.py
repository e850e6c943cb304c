"""Tables with a row per game, book and line, and a column of prices per outcome: `home_odds`, `over_odds`, `X`.

`wide_names` says what each column is of. Prices of home and away are a moneyline, or with a draw a 1X2, unless the name
or a column `market_type` says another market, or a column has the line of the home or of the away team.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from oddsengine.tables.casts import is_empty, is_number, mostly_priced
from oddsengine.tables.column_names import AMERICAN, ANY_FORMAT, DECIMAL, WIDE, is_common
from oddsengine.tables.shapes import (
    PRICES,
    SELECTIONS,
    SOURCE_COLUMN,
    SOURCE_ROW,
    SPREADS,
    TEXTS,
    Long,
    Words,
    as_given,
    line_number,
    numbered,
    plain,
    stacked,
)
from oddsengine.tables.wide_names import SIDES, Cell, can_be, cell

_MOST_SPREAD, _MOST_TOTAL = 100.0, 1000.0


def sides(frame: pl.DataFrame, words: Words) -> Long | None:
    """Turn a table with a column of prices per outcome; None if it is none. Raises `ValueError` as `long_form`."""
    names = {words(name): name for name in frame.columns}
    read = ((name, cell(name if name in WIDE else words(name))) for name in frame.columns)
    named = [found._replace(name=words(name)) for name, found in read if found is not None]
    cells = [each for each in named if _is_of_side(each, frame[names[each.name]])]
    prices = [each for each in cells if each.kind == "price" and not each.derived]
    firsts = {each.side for each in prices}
    if not any({sides[0], sides[-1]} <= firsts for sides in SIDES.values()):
        return None
    if already := [name for name in PRICES if name in frame.columns]:
        raise ValueError(
            f"{words.listed(names[each.name] for each in prices[:2])} can be prices, and so can "
            f"{words(already[0])!r}: leave out what is none with frame.drop({[words(already[0])]})"
        )
    lines = [each for each in cells if each.kind == "line" and not each.derived]
    _refuse_unknown([*prices, *lines])
    _refuse_team_totals([*prices, *lines])
    prices = _one_of_each(prices)
    _refuse_half_stated(prices)
    _refuse_two_lines(lines)
    _refuse_no_lines(frame, lines, names)
    _refuse_unread(frame, words, cells)
    taken = {each.name: "" for each in prices}
    groups: dict[tuple[str, str], dict[str, list[Cell]]] = {}
    for each in prices:
        first = next(first for first, sides in SIDES.items() if each.side in sides)
        groups.setdefault((each.book, each.market or first), {}).setdefault(each.side, []).append(each)
    kept = [name for name in frame.columns if words(name) not in taken and words(name) not in {x.name for x in lines}]
    base = numbered(frame)
    parts = []
    outcomes: dict[tuple[Any, ...], Cell] = {}
    for (book, market), sides in groups.items():
        _refuse_half(sides)
        if market == "home" and "market_type" not in frame.columns:
            _refuse_line_of_nobody(frame, words, prices, lines)
        for side, each in ((side, each) for side, several in sides.items() for each in several):
            kind = _market(market, set(sides), lines, [other.market for other in prices], frame.columns)
            line, from_ = _line(each, kind, lines, names, base, words)
            key = (book, kind, side, each.line)
            if kind and (other := outcomes.setdefault(key, each)) is not each:
                raise ValueError(
                    f"{other.name!r} and {each.name!r} can each be the odds of {side}: leave one out with "
                    f"frame.drop({[each.name]})"
                )
            columns = {
                SOURCE_COLUMN: pl.lit(each.name),
                (each.form or ANY_FORMAT): as_given(base, names[each.name]),
                "selection": pl.lit(SELECTIONS.get(side, side.title())),
                "selection_type": pl.lit(side),
                **({"sportsbook": pl.lit(book)} if book else {}),
                **({"market_type": pl.lit(kind)} if kind else {}),
                **({"line": line} if line is not None else {}),
            }
            taken[each.name] = f"odds of {side}, {kind or 'the market of the row'}{f', {book}' if book else ''}"
            taken |= {name: f"line of {market_of}" for name, market_of in from_.items()}
            own = [name for name in (SOURCE_ROW, *kept) if name not in columns]
            parts.append(base.select(*own, **columns))
    if any(each.book for each in prices) and "sportsbook" in frame.columns:
        raise ValueError(
            f"books are named by {words('sportsbook')!r} and by {next(x.name for x in prices if x.book)!r}: "
            f"leave one out with frame.drop({[words('sportsbook')]})"
        )
    taken |= {each.name: "not used: of several books" for each in cells if each.derived}
    return Long(stacked(parts), taken, rows=False)


def _is_of_side(each: Cell, values: pl.Series) -> bool:
    """Whether a column has what its name says; names of outcomes alone can be those of teams, or of scores."""
    if not (values.dtype.is_numeric() or values.dtype in TEXTS):
        return False
    return mostly_priced(values) if each.kind == "price" and (each.bare or each.unknown) else values.len() > 0


def _left_out(names: list[str], why: str) -> ValueError:
    plural = "s" if len(names) > 1 else ""
    return ValueError(
        f"the column{plural} {' and '.join(map(repr, names))} {why}: leave {'them' if plural else 'it'} out with "
        f"frame.drop({names})"
    )


def _refuse_team_totals(cells: list[Cell]) -> None:
    if names := [each.name for each in cells if each.market == "total" and each.side in ("home", "away")]:
        raise _left_out(names, "can be totals of a team, which a table of this shape cannot say")


def _refuse_two_lines(lines: list[Cell]) -> None:
    by_side: dict[tuple[str, str, str], list[str]] = {}
    for each in lines:
        by_side.setdefault((each.book, each.market, each.side), []).append(each.name)
    for several in by_side.values():
        if len(several) > 1:
            raise ValueError(
                f"{' and '.join(map(repr, several))} can each be the line: leave one out with frame.drop({several[1:]})"
            )


def _refuse_no_lines(frame: pl.DataFrame, lines: list[Cell], names: Mapping[str, str]) -> None:
    """Raise if a column that is named as a line has numbers that are none, such as prices or scores."""
    for each in lines:
        values = frame.select(line_number(names[each.name])).to_series().drop_nulls()
        most = _MOST_SPREAD if each.market == "spread" else _MOST_TOTAL
        wrong = values.filter((values.abs() >= most) | ((values * 4.0) % 1.0 != 0.0))
        if wrong.len():
            raise _left_out([each.name], f"is no line, as {wrong[0]:g} shows")


def _refuse_unread(frame: pl.DataFrame, words: Words, cells: list[Cell]) -> None:
    """Raise if a column of numbers is neither read nor known to be something else, although it may matter."""
    known = {each.name for each in cells}
    for name in frame.columns:
        called = words(name)
        if called in known or name != called or is_common(called) or plain(called) in SPREADS:
            continue  # read, of another kind, or refused where it matters
        if can_be(called) and is_number(frame[name]):
            raise _left_out([called], "can be of prices or lines, and it is not known of which")
    if "player_name" in frame.columns and "market_type" not in frame.columns:
        raise ValueError(f"prices of {words('player_name')!r} need a market: say which in a column market_type")


def _refuse_unknown(prices: list[Cell]) -> None:
    if unknown := [each for each in prices if each.unknown]:
        names = [each.name for each in unknown]
        book = unknown[0].unknown
        raise ValueError(
            f"the columns {', '.join(map(repr, names))} can be odds of a book {book!r}, which the catalog does not "
            f"have, or no odds: leave them out with frame.drop({names})"
        )


def _one_of_each(prices: list[Cell]) -> list[Cell]:
    """Leave out American prices that are given as decimal ones too. Raises if two columns have one price otherwise."""
    by_outcome: dict[tuple[Any, ...], list[Cell]] = {}
    for each in prices:
        by_outcome.setdefault(each.outcome, []).append(each)
    out = []
    for several in by_outcome.values():
        if {each.form for each in several} == {DECIMAL, AMERICAN} and len(several) == 2:
            out += [each for each in several if each.form == DECIMAL]
            continue
        if len(several) > 1:
            opening = [each.name for each in prices if each.when == "open"]
            others = opening or [each.name for each in several[1:]]
            raise ValueError(
                f"{' and '.join(repr(each.name) for each in several)} can each be the odds of {several[0].side}: leave "
                f"out {'the opening ones' if opening else 'one'} with frame.drop({others})"
            )
        out += several
    return [each for each in prices if each in out]


def _refuse_half_stated(prices: list[Cell]) -> None:
    """Raise if the names of some columns say the format of their prices, and others do not."""
    stated, unstated = ([each for each in prices if bool(each.form) is whether] for whether in (True, False))
    if stated and unstated:
        form, names = stated[0].form.removeprefix("odds_"), [each.name for each in unstated]
        raise ValueError(
            f"column {stated[0].name!r} has {form} odds by its name, and {names[0]!r} does not say which: say it with "
            f"frame.rename({{name: name + ' {form}' for name in {names}}})"
        )


def _refuse_half(sides: Mapping[str, list[Cell]]) -> None:
    first = next(first for first, of in SIDES.items() if next(iter(sides)) in of)
    whole = {SIDES[first][0], SIDES[first][-1]}
    if missing := [side for side in SIDES[first] if side in whole - set(sides)]:
        name = next(iter(sides.values()))[0].name
        raise ValueError(
            f"column {name!r} has odds of {next(iter(sides))}, and no column has those of {missing[0]}: leave it out "
            f"with frame.drop({[name]})"
        )


def _refuse_line_of_nobody(frame: pl.DataFrame, words: Words, prices: list[Cell], lines: list[Cell]) -> None:
    """Raise if odds of home and away may be those of a spread whose line does not say whose it is."""
    first = next(each.name for each in prices if each.side == "home")
    spreads = [each.name for each in lines if each.market == "spread" and "line" not in plain(each.name).split()]
    if spreads and not any(each.market == "spread" for each in prices):
        raise ValueError(
            f"{first!r} can be the odds of the spread in {spreads[0]!r}, or of the moneyline: say which with "
            f"columns={{{first!r}: 'home_spread_odds', ...}} or 'home_ml'"
        )
    if any(each.market == "spread" for each in (*prices, *lines)):
        return
    line = next((name for name in frame.columns if name == "line" or plain(words(name)) in SPREADS), None)
    if line is not None and frame[line].null_count() < frame.height:
        called = words(line)
        raise ValueError(
            f"column {called!r} can be the line of the home or of the away team, or have nothing to do with {first!r}: "
            f"say which with columns={{{called!r}: 'home_line'}} or 'away_line' or 'total_line', or leave it out"
        )


def _market(market: str, sides: set[str], lines: list[Cell], markets: list[str], names: Iterable[str]) -> str:
    """The market type of some prices; empty if the row says it."""
    if market in SIDES:
        if "market_type" in names:
            return ""
        if market == "home":
            spread = any(each.market == "spread" and each.side for each in lines) and "spread" not in markets
            market = "spread" if spread else "moneyline"
    if market == "total" and "market_type" in names:
        return ""
    if market == "moneyline" and "draw" in sides:
        return "1x2"
    if market == "spread" and "draw" in sides:
        raise ValueError("a draw has no odds in a spread: name the market in a column market_type")
    return market


def _line(
    each: Cell, market: str, lines: list[Cell], names: Mapping[str, str], base: pl.DataFrame, words: Words
) -> tuple[pl.Expr | None, dict[str, str]]:
    """The line of a price, and what the columns that it is from are taken for."""
    family = market or ("total" if each.side in ("over", "under") else "spread")
    own = [line for line in lines if line.market == family and line.book in ("", each.book)]
    if family not in ("spread", "total"):
        return None, {}
    if each.line is not None:
        return pl.lit(each.line), {}
    shared = words("line")
    if family == "total":
        if own:
            mine = [line for line in own if line.side == each.side] or own
            mine = [line for line in mine if line.book == each.book] or mine
            others = {line.name for line in own if line.side in ("", each.side) and line.book == mine[0].book}
            if "line" in base.columns:
                others.add(shared)
            if len(others) > 1:
                raise ValueError(
                    f"{' and '.join(map(repr, sorted(others)))} can each be the line of the total: leave one out with "
                    f"frame.drop({sorted(others)[1:]})"
                )
            return line_number(names[mine[0].name]), {mine[0].name: "the total"}
        if "line" in base.columns:
            return line_number("line"), {shared: "the row"}
        if market:
            raise ValueError(
                f"{each.name!r} has odds of {each.side}, and no column has the line of the total: name it as "
                "columns={'ITS NAME': 'total_line'}"
            )
        return None, {}
    sides = {line.side: names[line.name] for line in own if line.side}
    if len(sides) == 2:
        both = base.select(line_number(sides["home"]), away=line_number(sides["away"]))
        apart = (both.to_series(0) + both.to_series(1)).abs() > 1e-9
        if apart.any():
            at = int(apart.arg_max() or 0)
            raise ValueError(
                f"the lines of home and away must be opposite, got {both[at, 0]} and {both[at, 1]} in {words.place(at)}"
            )
    if sides:
        of = each.side if each.side in sides else next(iter(sides))
        value = line_number(sides[of])
        return (value if of == each.side else 0.0 - value), {words(sides[of]): f"the spread of {of}"}
    if "line" in base.columns:
        if market or (base["line"].is_not_null() & ~is_empty(base[names[each.name]])).any():
            raise ValueError(
                f"column {shared!r} can be the line of the home or of the away team: say which with "
                f"columns={{{shared!r}: 'home_line'}} or 'away_line'"
            )
        return None, {}
    if market:
        shared = next((words(name) for name in base.columns if plain(words(name)) in SPREADS), "")
        where = (
            f"whether {shared!r} has that of the home or of the away team is not said: "
            f"columns={{{shared!r}: 'home_line'}} or 'away_line'"
            if shared
            else "no column has its line: name it as columns={'ITS NAME': 'home_line'}"
        )
        raise ValueError(f"{each.name!r} has odds of a spread, and {where}")
    return None, {}
