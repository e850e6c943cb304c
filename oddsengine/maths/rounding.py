"""Rounding of published numbers: the digits of each kind of number, in answers of the service and in reports."""

AMERICAN_DIGITS = 2
PRECISE_DIGITS = 6
"""Of decimal prices and probabilities."""
USUAL_DIGITS = 4
"""Of all other numbers."""
MONEY_DIGITS = 2
AGE_DIGITS = 1
"""Of ages in seconds."""
CALCULATED_DIGITS = 10
"""Of what the calculators of the command line print as JSON."""
_REPORTED = {
    "odds_american": AMERICAN_DIGITS,
    "no_vig_odds": AMERICAN_DIGITS,
    "kelly_percent": PRECISE_DIGITS,
}


def exact(value: float, digits: int = USUAL_DIGITS) -> float:
    """Round a number; never -0.0."""
    return round(value, digits) + 0.0


def reported_digits(name: str) -> int:
    """The digits of a column in a report. Unlike in the service, decimal prices have the usual ones."""
    return _REPORTED.get(name, PRECISE_DIGITS if "probability" in name else USUAL_DIGITS)
