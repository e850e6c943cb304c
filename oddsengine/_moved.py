"""Old names of modules: for one version, importing one says where it is now."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "arbitrage": "maths.arbitrage",
    "archive": "history.archive",
    "auditing": "backtesting",
    "backtesting.tearsheet": "plot.tearsheet",
    "board.scan": "board.json_scan",
    "calculators": "maths.calculators",
    "casts": "tables.casts",
    "cli": "commands.cli",
    "closing": "history.closing",
    "closing_consensus": "history.closing_consensus",
    "clv": "history.clv",
    "commission": "pricing.commission",
    "compilation": "compiling.compilation",
    "detect": "detection.sweep",
    "devig": "maths.devig",
    "engine": "live.engine",
    "explain": "detection.explain",
    "expressions": "tables.expressions",
    "fair_close": "pricing.close",
    "feeds.interface": "feeds.node",
    "find": "detection",
    "frames": "tables.frames",
    "games": "feeds.scores",
    "groups": "identity.groups",
    "kelly": "maths.kelly",
    "layout": "identity.layout",
    "markets": "identity.table",
    "middle": "maths.middle",
    "momentum": "pricing.momentum",
    "odds": "maths.odds",
    "open_opportunities": "board.open",
    "opportunities": "detection.finders",
    "outcomes": "staking.outcomes",
    "portfolio": "staking.growth",
    "reading": "feeds.reading",
    "reasons": "catalog.reasons",
    "references": "pricing.references",
    "replica": "live.replica",
    "results": "detection.results",
    "sample": "tables.sample",
    "schema": "tables.schema",
    "scoring": "maths.scoring",
    "snapshot": "live.snapshot",
    "spreadsheets": "tables.spreadsheets",
    "stakes": "staking.stakes",
    "strategy": "backtesting.strategy",
    "tails": "detection.tails",
    "tearsheet": "plot.tearsheet",
    "timestamps": "tables.timestamps",
    "traits": "identity.traits",
    "twins": "identity.twins",
    "update": "live.update",
    "value": "maths.value",
    "view": "live.view",
    "warm": "compiling.loading",
}


class OldNames(MetaPathFinder):
    """The last finder of modules: raises the error of a name that no other has found."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise `ImportError` for the old name of a module."""
        package, _, module = name.partition(".")
        if package == __package__ and module in MOVED:
            raise ImportError(f"{name} is now {package}.{MOVED[module]}", name=name)
        return None


def install() -> None:
    """Add the finder, once."""
    if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
        sys.meta_path.append(OldNames())
