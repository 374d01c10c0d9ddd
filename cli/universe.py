"""What does partir add to xDSL's tools? Its passes and its dialects, found by entry point.

`stablehlo`, `chlo` and `sdy` are offered only where no other installed universe has them: two
universes that define one dialect break every xDSL tool of the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

_NAME = "partir"

# dialect name: (module, attribute of the module)
_DIALECTS = {
    "partir": ("partir_dialect.partir", "Partir"),
}
_SHARED_DIALECTS = {
    "stablehlo": ("partir_dialect.stablehlo", "Stablehlo"),
    "chlo": ("partir_dialect.chlo", "Chlo"),
    "sdy": ("partir_dialect.sdy", "Sdy"),
}

# pass name: (module, class)
PASSES = {
    "partir-check-spmd": ("passes.check_spmd", "CheckSpmdPass"),
    "partir-import-shardings": ("passes.import_shardings", "ImportShardingsPass"),
    "partir-lower-to-spmd": ("passes.lower_to_spmd", "LowerToSpmdPass"),
    "partir-optimise-collectives": ("passes.optimise_collectives", "OptimiseCollectivesPass"),
    "partir-propagate": ("passes.propagate", "PropagatePass"),
    "partir-replicate": ("passes.replicate", "ReplicatePass"),
    "partir-stop": ("passes.replicate", "StopPass"),
    "partir-tile": ("passes.tile", "TilePass"),
    "partir-to-sdy": ("passes.to_sdy", "ToSdyPass"),
    "partir-to-stablehlo": ("passes.to_stablehlo", "ToStablehloPass"),
    "partir-loops": ("passes.loops", "LoopsPass"),
    "partir-nests": ("passes.nests", "NestsPass"),
    "partir-prepare": ("passes.prepare", "PreparePass"),
    "partir-verify": ("passes.verify", "VerifyPass"),
}


def _load(module: str, name: str) -> object:
    return getattr(import_module(f"..{module}", __package__), name)


def _dialect(place: tuple[str, str]) -> Callable[[], Dialect]:
    def factory() -> Dialect:
        dialect = _load(*place)
        assert isinstance(dialect, Dialect)
        return dialect

    return factory


def _pass(place: tuple[str, str]) -> Callable[[], type[ModulePass]]:
    def factory() -> type[ModulePass]:
        class_ = _load(*place)
        assert isinstance(class_, type) and issubclass(class_, ModulePass)
        return class_

    return factory


def _taken() -> set[str]:
    """The dialects that other installed universes define."""
    taken: set[str] = set()
    for plugin in entry_points(group="xdsl.universe"):
        if plugin.name != _NAME:
            universe = plugin.load()
            taken |= set(universe.all_dialects)
    return taken


def _dialects() -> dict[str, tuple[str, str]]:
    taken = _taken()
    return _DIALECTS | {n: place for n, place in _SHARED_DIALECTS.items() if n not in taken}


PARTIR_UNIVERSE = Universe(
    all_dialects={name: _dialect(place) for name, place in _dialects().items()},
    all_passes={name: _pass(place) for name, place in PASSES.items()},
)
