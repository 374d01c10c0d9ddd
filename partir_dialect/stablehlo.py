"""What is StableHLO to this project? The dialect with all of its ops, attributes and types.

The ops live in one file a family; this one exports them under one name: `stablehlo.AddOp`.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .stablehlo_attrs import *  # noqa: F403
from .stablehlo_attrs import ATTRIBUTES
from .stablehlo_base import HloOp
from .stablehlo_collective import *  # noqa: F403
from .stablehlo_collective import COLLECTIVE_OPS
from .stablehlo_contraction import *  # noqa: F403
from .stablehlo_contraction import CONTRACTION_OPS
from .stablehlo_control import *  # noqa: F403
from .stablehlo_control import CONTROL_OPS
from .stablehlo_elementwise import *  # noqa: F403
from .stablehlo_elementwise import ELEMENTWISE_OPS
from .stablehlo_reduction import *  # noqa: F403
from .stablehlo_reduction import REDUCTION_OPS
from .stablehlo_shape import *  # noqa: F403
from .stablehlo_shape import SHAPE_OPS

OPS: list[type[HloOp]] = [
    *ELEMENTWISE_OPS,
    *SHAPE_OPS,
    *CONTRACTION_OPS,
    *REDUCTION_OPS,
    *COLLECTIVE_OPS,
    *CONTROL_OPS,
]
"""Every op of the dialect."""

Stablehlo = Dialect("stablehlo", list(OPS), ATTRIBUTES)
