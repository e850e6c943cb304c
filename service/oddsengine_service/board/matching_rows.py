"""Which rows match the sport, league, event and state of a query or of a subscription."""

from collections.abc import Iterable, Sequence
from typing import Any

from oddsengine.query import values


def which_match(
    wanted: Any, sports: Sequence[str], leagues: Sequence[str], events: Sequence[str] | None = None,
    live: Sequence[bool] | None = None,
) -> list[bool]:  # fmt: skip
    """Which rows match `sport`, `league`, `event` and `live` of a query or filter, for the columns that they have."""
    masks: list[Iterable[bool]] = [[True] * len(sports)]
    if (words := getattr(wanted, "sport", None)) is not None:
        masks.append(values.in_sports(words, sports))
    if (words := getattr(wanted, "league", None)) is not None:
        masks.append(values.in_leagues(words, zip(sports, leagues, strict=True)))
    if events is not None and wanted.event is not None:
        masks.append(event in wanted.event for event in events)
    if live is not None and wanted.live is not None:
        masks.append(each == wanted.live for each in live)
    return [all(row) for row in zip(*masks, strict=True)]
