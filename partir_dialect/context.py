"""Which dialects does this project read? One context with all of them."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Dialect

from .chlo import Chlo
from .partir import Partir
from .quant import Quant
from .sdy import Sdy
from .stablehlo import Stablehlo

DIALECTS: tuple[Dialect, ...] = (Builtin, Func, Stablehlo, Chlo, Sdy, Quant, Partir)
"""What `make_context` loads."""


def make_context(*extra: Dialect, allow_unregistered: bool = True) -> Context:
    """A context with builtin, func, StableHLO, CHLO, sdy, partir and `extra`.

    Attributes and types of other dialects are carried as text unless `allow_unregistered` is off.
    """
    context = Context(allow_unregistered=allow_unregistered)
    for dialect in (*DIALECTS, *extra):
        context.load_dialect(dialect)
    return context
