"""The record of a node as a file: by ISO week, the EV shown, and what it was worth once the games began.

`backtesting.live_audit` writes the file, and the service reads and serves it.
"""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

TRUTH, REPORT = "truth", "report.json"
GROUPS = ("book", "league", "market")
_FORMAT = 1

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Percent = Annotated[float | None, Meta(description="Percent of the stake; null while too few games are graded.")]


class Figures(msgspec.Struct, kw_only=True):
    """What some prices showed, and what they were worth at the close of the other books; errors are by game."""

    prices: Annotated[int, Meta(description="Prices when first shown at an EV of 1 or more.")]
    graded: Annotated[int, Meta(description="Those with a close of the other books.")]
    games: Annotated[int, Meta(description="Games of the graded prices.")]
    avg_ev: Percent = None
    avg_worth: Percent = None
    worth_error: Percent = None
    bias: Annotated[float | None, Meta(description="EV shown less its worth: above 0, too much was shown.")] = None
    bias_error: Percent = None


class Week(Figures, kw_only=True):
    """The games that began in an ISO week."""

    week: Annotated[str, Meta(description="Such as 2026-W48.")]
    begins: Annotated[str, Meta(description="Its Monday.", extra_json_schema={"format": "date"})]


class Group(Figures, kw_only=True):
    """The prices of one book, league or kind of market, in all weeks."""

    by: Annotated[str, Meta(extra_json_schema={"enum": list(GROUPS)})]
    value: str
    biased: Annotated[
        bool, Meta(description="50 games and a bias of more than two standard errors: `calibrate` would help.")
    ]


class Reference(msgspec.Struct, kw_only=True):
    """How good the prices of a book are as a reference for a kind of market, against the close of the other books."""

    sportsbook: str
    market: Annotated[str, Meta(description="Of a full game; `player_props` of a sport are one kind.")]
    sport: Annotated[str | None, Meta(description="Of player props; null: all sports.")]
    games: int
    games_missing: Annotated[int, Meta(description="Games that are missing before figures are given.")]
    prices: Annotated[int, Meta(description="Outcomes, six hours and one hour before the start.")]
    log_loss: Annotated[
        float | None,
        Meta(description="Of its prices without their margin, the close of the other books being the truth."),
    ] = None
    log_loss_error: float | None = None
    excess: Annotated[float | None, Meta(description="Log loss above that of our fair price from the other books.")] = (
        None
    )
    excess_error: float | None = None
    alone: Annotated[bool | None, Meta(description="Whether it is good enough to be the only reference.")] = None


class FillShare(msgspec.Struct, kw_only=True):
    """How many of some opportunities could be had, by the prices that followed (`oddsengine fills`)."""

    kind: str
    sportsbooks: Annotated[list[str] | None, Meta(description="Books of the legs, sorted; null: any books.")]
    stake: Annotated[float, Meta(description="Total stake of all legs, USD.")]
    shown: Annotated[int, Meta(description="Number of opportunities shown before games.")]
    whole_least: Annotated[float, Meta(description="Percent that could be taken in full: lower bound.")]
    whole_most: Annotated[float, Meta(description="The same: upper bound.")]


class TruthReport(msgspec.Struct, kw_only=True):
    """What a node showed and what it was worth."""

    read_until: Annotated[Moment | None, Meta(description="Time of the last step that was read.")]
    fair: Annotated[str, Meta(description="Name of the constants in force then.")]
    games_missing: Annotated[int, Meta(description="Graded games that are missing before figures are given.")]
    games_waiting: Annotated[int, Meta(description="Games with prices shown that are not graded yet.")]
    summary: Annotated[str, Meta(description="The total in a sentence.")]
    total: Figures
    weeks: list[Week]
    groups: list[Group]
    references: list[Reference]
    left_out: Annotated[list[str], Meta(description="Tapes that could not be read, and why.")]
    fills: Annotated[
        list[FillShare], Meta(description="By kind, and by kind and books; those of which 50 or more were shown.")
    ] = []


class _Stored(msgspec.Struct):
    """The file of a report."""

    format: int
    report: TruthReport


def report_file(folder: str | Path) -> Path:
    """The report in a data folder."""
    return Path(folder) / TRUTH / REPORT


def encoded_report(report: TruthReport) -> bytes:
    """Return the content of a report's file."""
    return msgspec.json.format(msgspec.json.encode(_Stored(_FORMAT, report)), indent=1)


def read_report(content: bytes) -> TruthReport:
    """Parse a report's file.

    Raises
    ------
    ValueError
        If it is damaged or of another format; the message is for the operator.
    """
    try:
        number = msgspec.json.decode(content, type=dict[str, Any]).get("format")
        if number != _FORMAT:
            raise ValueError(f"it has format {number!r}, this version reads format {_FORMAT}")
        return msgspec.json.decode(content, type=_Stored).report
    except msgspec.DecodeError as error:
        raise ValueError(f"it is damaged: {error}") from None
