"""Equivalent outcomes: outcomes of different families that settle on the same fact, declared in equivalents.toml."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from oddsengine.catalog import data_files


class EquivalentOutcome(NamedTuple):
    """One outcome of a family, with line (for spreads the home handicap) and side if it has these."""

    family: str
    outcome: str
    line: float = 0.0
    subject: str = ""


class EquivalentOutcomes(NamedTuple):
    """Outcomes that settle on the same fact in some sports."""

    fact: str
    sports: frozenset[str]
    members: tuple[EquivalentOutcome, ...]
    example: str


@cache
def equivalents() -> Mapping[str, EquivalentOutcomes]:
    """Return outcomes of different families that settle on the same fact, by fact.

    Examples
    --------
    >>> [member.family for member in equivalents()["no_goal"].members]
    ['first_to_score', 'last_to_score', 'total']
    """
    return MappingProxyType(
        {
            id_: EquivalentOutcomes(
                entry["fact"], frozenset(entry["sports"]),
                tuple(EquivalentOutcome(**member) for member in entry["members"]),
                entry["example"],
            )
            for id_, entry in data_files.toml("equivalents.toml").items()
        }
    )  # fmt: skip


@cache
def with_equivalents(sport_id: str) -> frozenset[str]:
    """Return the families with an outcome that has an equivalent outcome in a sport."""
    return frozenset(each.family for fact in equivalents().values() if sport_id in fact.sports for each in fact.members)
