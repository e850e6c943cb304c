"""Errors of `/v4`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from oddsengine_service.errors import DOCS, Problem

CODES: Mapping[str, str] = {
    "MISSING_KEY": "The request has no API key.",
    "INVALID_KEY": "The API key is not valid.",
    "DEACTIVATED_KEY": "The API key was revoked.",
    "TIER_RESTRICTED": "The tier of the key does not include this feature or bookmaker.",
    "UNKNOWN_SPORT": "There is no sport with this key.",
    "EVENT_NOT_FOUND": "The sport has no event with this id, or no longer has it.",
    "MISSING_REGION": "The request has neither `regions` nor `bookmakers`.",
    "INVALID_REGION": "There is no region with this key.",
    "INVALID_BOOKMAKERS": "There is no bookmaker with this key.",
    "MISSING_MARKET": "`markets` is empty.",
    "INVALID_MARKET": "There is no market with this key, or it is only for single events.",
    "INVALID_MARKET_COMBO": "A sport of outrights has no other market, and games have no outrights.",
    "INVALID_DATE_FORMAT": "`dateFormat` is neither `iso` nor `unix`.",
    "INVALID_ODDS_FORMAT": "`oddsFormat` is neither `decimal` nor `american`.",
    "INVALID_COMMENCE_TIME_FROM": "`commenceTimeFrom` is not a time such as 2026-02-08T18:00:00Z.",
    "INVALID_COMMENCE_TIME_TO": "`commenceTimeTo` is not such a time, or before `commenceTimeFrom`.",
    "INVALID_EVENT_ID": "The id of an event is not 32 hexadecimal digits.",
    "INVALID_EVENT_IDS": "One of `eventIds` is not 32 hexadecimal digits.",
    "INVALID_SCORES_DAYS_FROM": "`daysFrom` is not 1, 2 or 3.",
    "INVALID_HISTORICAL_TIMESTAMP": "`date` is missing, or not a time such as 2026-02-08T18:00:00Z.",
    "INVALID_PARAMETER": "Another parameter is not valid.",
    "EXCEEDED_FREQ_LIMIT": "The rate limit of the tier is exceeded; Retry-After says when to retry.",
}
"""Codes of `/v4` beside ours in capital letters."""

_OURS = {
    "validation_error": "INVALID_PARAMETER", "feature_required": "TIER_RESTRICTED",
    "rate_limited": "EXCEEDED_FREQ_LIMIT",
}  # fmt: skip
_STATUSES = {400: 422, 403: 401}


class V4Error(msgspec.Struct):
    """The body of errors of `/v4`."""

    message: str
    error_code: str
    details_url: str


class V4Problem(Problem):
    """An error response of `/v4`."""

    def body(self, origin: str) -> dict[str, Any]:
        anchor = self.code if self.code in CODES else self.code.lower()
        error = V4Error(self.message, self.code, f"{origin}{DOCS}#{anchor}")
        return msgspec.structs.asdict(error)


def refused(code: str, message: str, status: int = 422) -> Problem:
    """An error of `/v4` by its own code."""
    return Problem(status, code, message)


def v4_problem(problem: Problem) -> V4Problem:
    """An error of any endpoint as one of `/v4`."""
    code = _OURS.get(problem.code, problem.code.upper())
    return V4Problem(_STATUSES.get(problem.status, problem.status), code, problem.message, **problem.extra)
