"""The class of all figures, and axes of time. Importing this imports matplotlib."""

import io
from datetime import UTC

from matplotlib import dates, rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

_DPI = 110


class PlotFigure(Figure):
    """A figure that notebooks show as the value of a cell, whether or not they use pyplot."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", facecolor=self.get_facecolor())
        return picture.getvalue()


def new_figure(width: float, height: float) -> PlotFigure:
    """Return an empty figure of a size in inches, with an opaque background."""
    return PlotFigure((width, height), dpi=_DPI, layout="constrained", facecolor=to_rgb(rcParams["figure.facecolor"]))


def neutral() -> str:
    """Return the colour of text."""
    return str(rcParams["text.color"])


def set_time(axes: Axes) -> None:
    """Label the x axis of some axes with times in UTC."""
    locator = dates.AutoDateLocator(tz=UTC, minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]
    axes.set_xlabel("time (UTC)")
