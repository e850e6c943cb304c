"""Equivalent outcomes: outcomes of different families that settle on the same fact, linked as rings of segments.

"No first goal" and "under 0.5 goals" are the same fact. The catalog lists which outcomes are equivalent and in which
sports (equivalents.toml); only exact equivalences are listed. A price is compared with the fair probabilities of its
equivalent outcomes as well as with that of its own market (`detection.sweep.edges`), and the best price of an outcome
may be that of an equivalent one (`detection.sweep.best_legs`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.columns import Bytes, Ints, Longs
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import MarketKind

_SUBJECTS = {"": 0, "home": 1, "away": 2}


class Rules(NamedTuple):
    """Which outcomes are equivalent: those of kinds by fact, and the events to whose sports each fact applies."""

    start: Longs  # per kind: offset of its rules; one more for the end
    subject: Ints  # per rule, as are the next four columns
    threshold: Ints
    outcome: Ints
    fact: Ints  # fact within a period
    equivalent: Ints  # fact in the catalog
    allowed: Bytes  # (event, catalog's fact)
    facts: int


def rules(kinds: Sequence[MarketKind], sports: Sequence[tuple[catalog.Sport, str]]) -> Rules:
    """Look up the equivalent outcomes among the kinds of a board, for the sports of its events."""
    catalogued = tuple(catalog.equivalents().values())
    facts: dict[tuple[str, int], int] = {}
    start, columns = [0], list[tuple[int, int, int, int, int]]()
    for kind in kinds:
        for at, equivalents in enumerate(catalogued):
            for member in equivalents.members:
                if member.family == kind.family:
                    fact = facts.setdefault((kind.period, at), len(facts))
                    sign = -1 if kind.spread else 1
                    line = round(sign * member.line * 100)
                    columns.append((_SUBJECTS[member.subject], line, kind.outcomes.index(member.outcome), fact, at))
        start.append(len(columns))
    table = np.array(columns, np.int32).reshape(-1, 5)
    by_sport = {
        sport: [sport in equivalents.sports for equivalents in catalogued]
        for sport in {sport.id for sport, _ in sports}
    }
    allowed = np.array([by_sport[sport.id] for sport, _ in sports], np.uint8)
    subject, threshold, outcome, of_period, equivalent = (np.ascontiguousarray(column) for column in table.T)
    return Rules(
        start=np.array(start, np.int64),
        subject=subject,
        threshold=threshold,
        outcome=outcome,
        fact=of_period,
        equivalent=equivalent,
        allowed=allowed.reshape(len(sports), len(catalogued)),
        facts=len(facts),
    )


@kernel
def _link(
    markets, segments, threshold, event, live, kind, subject, start, r_subject, r_threshold, r_outcome, r_fact,
    r_equivalent, allowed, first_segment, last_segment, run, equivalent,
):  # fmt: skip
    """Link the equivalent outcomes of each event and live flag into rings: each segment points to the next one.

    - `markets`, `segments`, `threshold`, `event`, `live`, `kind`, `subject`, `equivalent`: as in `Groups`; `equivalent`
      is written
    - `start`, `r_subject`, `r_threshold`, `r_outcome`, `r_fact`, `r_equivalent`, `allowed`: the columns of `Rules`
    - `first_segment`, `last_segment`, `run` (int64 per fact): scratch arrays: the ends of a fact's ring, and the
      first ladder of its event
    """
    for s in range(equivalent.size):
        equivalent[s] = s
    run_start = 0
    for at in range(markets.size - 1):
        if at > 0 and (event[at] != event[at - 1] or live[at] != live[at - 1]):
            run_start = at
        for r in range(start[kind[at]], start[kind[at] + 1]):
            if subject[at] != r_subject[r] or allowed[event[at], r_equivalent[r]] == 0:
                continue
            for m in range(markets[at], markets[at + 1]):
                if threshold[m] != r_threshold[r]:
                    continue
                s, fact = segments[m] + r_outcome[r], r_fact[r]
                if run[fact] != run_start:
                    run[fact], first_segment[fact] = run_start, s
                else:
                    equivalent[last_segment[fact]] = s
                equivalent[s] = first_segment[fact]
                last_segment[fact] = s
                break


def linked(g: Groups, rules: Rules) -> Groups:
    """Return the groups with `equivalent` filled in."""
    equivalent = np.empty(g.rows.size - 1, np.int64)
    _link(
        g.markets, g.segments, g.threshold, g.event, g.live, g.kind, g.subject, rules.start, rules.subject,
        rules.threshold, rules.outcome, rules.fact, rules.equivalent, rules.allowed, np.empty(rules.facts, np.int64),
        np.empty(rules.facts, np.int64), np.full(rules.facts, -1, np.int64), equivalent,
    )  # fmt: skip
    return g._replace(equivalent=equivalent)


def with_equivalents(g: Groups, segment: Longs) -> tuple[Longs, Longs]:
    """Return some segments and all their equivalent outcomes: the place of each among those given, and the segment."""
    place, found = [np.arange(segment.size)], [segment]
    while g.equivalent.size:
        following = g.equivalent[found[-1]]
        new = np.flatnonzero(following != segment[place[-1]])
        if not new.size:
            break
        place.append(place[-1][new])
        found.append(following[new])
    return np.concatenate(place), np.concatenate(found)
