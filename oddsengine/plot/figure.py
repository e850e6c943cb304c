"""What all plots share: colours, and figures that say which extra is missing."""

from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette without yellow and black, which a white or a black background hides, and four of Tol's tones.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
GREY = "#888888"
COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, "#999933", "#8A5FC4", "#44AA99", "#A05A2C")
STYLES = ("-", "--", ":")
Z = 1.96  # standard errors in half a 95 % interval


def library() -> ModuleType:
    """Import `oddsengine.plot.canvas`, and with it matplotlib.

    Raises `ImportError` that names the extra if it is not installed.
    """
    try:
        from oddsengine.plot import canvas  # noqa: PLC0415  only who draws needs matplotlib
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ImportError(
            'plots need the package matplotlib; run pip install "oddsengine[plots]"', name=error.name
        ) from None
    return canvas


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of a size in inches."""
    figure: Figure = library().new_figure(width, height)
    return figure


def neutral() -> str:
    """Return the colour of text."""
    return str(library().neutral())


def set_time(axes: "Axes") -> None:
    """Label the x axis with times in UTC."""
    library().set_time(axes)


def plain(axes: "Axes", title: str = "") -> None:
    """Remove the frame at the top and right, draw a light grid, and write a title at the left."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, loc="left", fontsize="medium")


def legend(axes: "Axes") -> None:
    """Place the legend beside the axes."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
