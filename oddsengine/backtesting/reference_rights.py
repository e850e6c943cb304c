"""What a node's record says of books as references: figures, and the rights and weights that follow from them.

**Alone.** A book may be the only reference for a kind of market if its log loss (`reference_samples`) is above ours by
no more than an error of `_MOST` in log-odds adds, that is `_MOST`^2 q (1 - q) / 2, with two standard errors to spare,
over `LEAST_GAMES`. Books usually disagree by 0.05, so of the EV that such a reference shows about 0.05^2 / (0.05^2 +
0.03^2), three quarters, are there. A kind that was measured has the right or does not; others keep what the table says.

**Weights.** How far the fair price should move from the other books towards a sharp book is the slope c of close - m
on x - m, by least squares. Its weight is c over `sharp.share`, shrunk towards that in the packaged table, which counts
as a measurement with a standard error of `_PRIOR`. Books that are no sharps, and have no right, keep weight 0.
"""

from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.reference_samples import PROPS, kinds, mean_of
from oddsengine.catalog.fair_constants import Alone, FairTable, fair_table
from oddsengine.history.truth_file import Reference
from oddsengine.pricing.close_table import voters

LEAST_GAMES = 100
_MOST = 0.03  # log-odds
_SURE = 2.0  # standard errors
_PRIOR, _LEAST_WEIGHT = 0.25, 0.05
_DIGITS, _TINY = 6, 1e-9


def references(sums: pl.DataFrame) -> list[Reference]:
    """Return the figures of each book and kind of market; those of fewer than `LEAST_GAMES` are withheld."""
    return [_reference(kind, part) for kind, part in kinds(sums)] if sums.height else []


def _reference(kind: dict[str, Any], sums: pl.DataFrame) -> Reference:
    games = sums["event"].n_unique()
    out = Reference(
        sportsbook=kind["book"], market=kind["market"], sport=kind["sport"], games=games,
        games_missing=max(0, LEAST_GAMES - games), prices=int(sums["n"].sum()),
    )  # fmt: skip
    if out.games_missing:
        return out
    apart = sums.with_columns(excess=pl.col("distance") - pl.col("our_distance"))
    apart = apart.with_columns(spare=pl.col("excess") - _MOST**2 * pl.col("unit"))
    out.log_loss, out.log_loss_error = (round(value, _DIGITS) for value in mean_of(apart, "loss"))
    out.excess, out.excess_error = (round(value, _DIGITS) for value in mean_of(apart, "excess"))
    spare, error = mean_of(apart, "spare")
    out.alone = spare + _SURE * error <= 0.0
    return out


def with_rights(table: FairTable, sums: pl.DataFrame) -> FairTable:
    """Return a table with the rights and weights that a record measured."""
    measured = [each for each in references(sums) if each.alone is not None]
    if not measured:
        return table
    known = {(each.sportsbook, _right(each)): each for each in measured}
    kept = [
        right._replace(
            families=tuple(name for name in right.families if (right.book, (name, None)) not in known),
            props=tuple(sport for sport in right.props if (right.book, (PROPS, sport)) not in known),
        )
        for right in table.alone
    ]
    books = dict.fromkeys(each.sportsbook for each in measured if each.alone)
    new = [_alone(book, [each for each in measured if each.alone and each.sportsbook == book]) for book in books]
    rights = tuple(right for right in (*kept, *new) if right.families or right.props)
    sharps = {**table.sharps, **_weights(table, sums, {right.book for right in rights})}
    return table._replace(alone=rights, sharps=MappingProxyType(sharps))


def _right(each: Reference) -> tuple[str, str | None]:
    return each.market, each.sport


def _alone(book: str, measured: list[Reference]) -> Alone:
    said = "; ".join(f"{kind_name(each)}: {each.games} games, {excess_text(each)}" for each in measured)
    families = tuple(each.market for each in measured if each.market != PROPS)
    props = tuple(each.sport for each in measured if each.market == PROPS and each.sport)
    return Alone(book, families, props, f"this node's record: {said}")


def _weights(table: FairTable, sums: pl.DataFrame, rights: set[str]) -> dict[str, float]:
    """Return the weights as sharps of books that have a right or a weight, by a record of enough games."""
    books = sorted(set(sums["book"].to_list()))
    before = dict(zip(books, voters(books, fair_table()).sharp.tolist(), strict=True))
    out = {}
    for book, weight in before.items():
        part = sums.filter(book=book)
        if part["event"].n_unique() < LEAST_GAMES or not (weight > 0.0 or book in rights):
            continue
        by_game = part.group_by("event", maintain_order=True).agg(pl.col("moved", "apart").sum())
        moved, apart = by_game["moved"].to_numpy(), by_game["apart"].to_numpy()
        total, games = float(apart.sum()), by_game.height
        if total <= 0.0:
            continue
        slope = float(moved.sum()) / total
        error = np.sqrt(games / (games - 1) * float(((moved - slope * apart) ** 2).sum())) / total
        share = table.constants.sharp_share
        sure, prior = (max(float(error), _TINY) / share) ** -2, _PRIOR**-2
        found = (sure * slope / share + prior * weight) / (sure + prior)
        out[book] = round(float(np.clip(found, _LEAST_WEIGHT if book in rights else 0.0, 1.0)), 2)
    return out


def kind_name(each: Reference) -> str:
    """Name a kind of market."""
    return f"{each.market} ({each.sport})" if each.sport else each.market


def excess_text(each: Reference) -> str:
    """Say how far the log loss is above ours."""
    return f"log loss {each.excess:+.6f} +-{each.excess_error:.6f} over ours"


def rights_text(found: list[Reference]) -> str:
    """Say of each book and kind of market whether it is enough alone, and how many games are missing of the others."""
    lines = [
        f"  {each.sportsbook}, {kind_name(each)}: {each.games} games, {excess_text(each)}: "
        + ("enough as the only reference" if each.alone else "not enough alone")
        for each in found
        if each.alone is not None
    ]
    few = [each for each in found if each.alone is None]
    if few:
        near = max(few, key=lambda each: each.games)
        more = ("1 other has" if len(few) == 1 else f"{len(few)} others have") if lines else "no book has"
        lines.append(
            f"  {more} {'fewer than ' if lines else ''}{LEAST_GAMES} games; {near.sportsbook}, {kind_name(near)} has "
            f"{near.games}, {near.games_missing} missing"
        )
    return "\n".join(lines)
