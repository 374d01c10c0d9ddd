"""The Piper planner: which stages, degrees and recomputation a layer graph should get.

Read a graph with `read_layer_graph`, plan it with `plan`, check any plan with `evaluate`; the
command line calls `plan_command`.
"""

from .baselines import Baseline, baselines
from .command import plan_command
from .evaluate import Evaluation, evaluate
from .model import (
    Edge,
    Fault,
    LayerGraph,
    LayerGraphError,
    LayerNode,
    LayerOption,
    Plan,
    PlanOptions,
    PlanStage,
    Problem,
)
from .planner import plan
from .read import parse_layer_graph, read_layer_graph

__all__ = [
    "Baseline",
    "Edge",
    "Evaluation",
    "Fault",
    "LayerGraph",
    "LayerGraphError",
    "LayerNode",
    "LayerOption",
    "Plan",
    "PlanOptions",
    "PlanStage",
    "Problem",
    "baselines",
    "evaluate",
    "parse_layer_graph",
    "plan",
    "plan_command",
    "read_layer_graph",
]
