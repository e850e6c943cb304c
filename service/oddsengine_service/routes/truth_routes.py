"""The node's record: by week, the EV shown, and what it was worth once the games began."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from oddsengine.history.truth_file import TruthReport
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.wire.envelopes import AnswerMeta, DataWith


class TruthMeta(AnswerMeta, kw_only=True):
    """Why there is no report."""

    message: Annotated[str | UnsetType, Meta(description="Why `data` is null.")] = UNSET


def truth(context: Context) -> Any:
    report = context.node.truth.report()
    if isinstance(report, str):
        return data(context, None, message=report)
    return data(context, report)


endpoints = (
    Endpoint(
        "/truth", truth, "What the EV shown was worth", "Historical", DataWith[TruthReport | None, TruthMeta],
        cache="never",
        doc="By ISO week of the start of the games, and by book, league and market: the EV of prices first shown at 1 "
        "% or more, and the EV of the same prices at the close of the other books. Standard errors are clustered by "
        "game. Figures are null until 50 games are graded, and `data` is null if the node has no report: `oddsengine "
        "audit --live` makes it of the tapes that the node records.",
    ),
)  # fmt: skip
