"""Hypothesis strategies for prices and markets."""

from hypothesis import strategies as st

Market = list[float]

MAX_OUTCOMES = 12


def prices(low: float = 1.001, high: float = 2000.0) -> st.SearchStrategy[float]:
    """Decimal odds as books write them (hundredths) and as anything in between."""
    written = st.integers(int(low * 100) + 1, int(high * 100)).map(lambda cents: cents / 100)
    return st.one_of(written, st.floats(low, high))


def not_prices() -> st.SearchStrategy[float]:
    """Numbers that are no decimal odds."""
    return st.one_of(
        st.sampled_from([float("nan"), float("inf"), float("-inf"), 1.0, 0.0, -0.0, -2.0]),
        st.floats(min_value=-99.0, max_value=1.0),  # lower ones are American, and refused
    )


def markets(outcomes: st.SearchStrategy[int] | None = None) -> st.SearchStrategy[Market]:
    """Any prices side by side: margins from far below zero to several hundred percent."""
    sizes = st.integers(2, MAX_OUTCOMES) if outcomes is None else outcomes
    return sizes.flatmap(lambda n: st.lists(prices(), min_size=n, max_size=n))


@st.composite
def books(draw: st.DrawFn, outcomes: st.SearchStrategy[int] | None = None) -> Market:
    """Prices as a book makes them: fair probabilities, shortened by a margin between -5 and +15 percent."""
    n = draw(st.integers(2, MAX_OUTCOMES) if outcomes is None else outcomes)
    weights = draw(st.lists(st.floats(0.01, 1.0), min_size=n, max_size=n))
    margin = draw(st.floats(-0.05, 0.15))
    total = sum(weights)
    return [max(1.0001, total / weight / (1.0 + margin)) for weight in weights]


def tables(market: st.SearchStrategy[Market]) -> st.SearchStrategy[list[Market]]:
    """A few markets, of sizes that may differ."""
    return st.lists(market, max_size=8)
