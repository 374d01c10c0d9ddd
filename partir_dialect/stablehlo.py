"""What is StableHLO to this project? The dialect with all of its ops, attributes and types.

The ops live in one file a family; this one exports them under one name.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import (
    stablehlo_attrs,
    stablehlo_collective,
    stablehlo_contraction,
    stablehlo_control,
    stablehlo_elementwise,
    stablehlo_reduction,
    stablehlo_shape,
)
from .stablehlo_attrs import *  # noqa: F403
from .stablehlo_base import HloOp
from .stablehlo_collective import *  # noqa: F403
from .stablehlo_contraction import *  # noqa: F403
from .stablehlo_control import *  # noqa: F403
from .stablehlo_elementwise import *  # noqa: F403
from .stablehlo_reduction import *  # noqa: F403
from .stablehlo_shape import *  # noqa: F403

OPS: list[type[HloOp]] = [
    *stablehlo_elementwise.OPS,
    *stablehlo_shape.OPS,
    *stablehlo_contraction.OPS,
    *stablehlo_reduction.OPS,
    *stablehlo_collective.OPS,
    *stablehlo_control.OPS,
]

Stablehlo = Dialect("stablehlo", list(OPS), list(stablehlo_attrs.ATTRIBUTES))
