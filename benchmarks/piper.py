"""How long does the Piper planner take? Measures the figures in docs/planner.md.

`python benchmarks/piper.py [bert] [resnet] [synthetic]`: the first two read the authors' inputs
from the shared folder (`PARTIR_SHARED`, default `../shared`); the third makes a graph of two
parallel chains with cross edges, with more than 15,000 downsets and 10 million nested pairs.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from partir.searcher.piper import (
    Edge,
    LayerGraph,
    LayerNode,
    LayerOption,
    PlanOptions,
    plan,
    read_layer_graph,
)

SHARED = Path(os.environ.get("PARTIR_SHARED", Path(__file__).resolve().parents[2] / "shared"))
GIB = 2**30
BERT = (
    (8, 8),
    (8, 32),
    (8, 64),
    (8, 512),
    (2, 64),
    (1, 128),
    (80, 64),
    (80, 512),
    (8, 2048),
    (1, 64),
    (2, 8),
)
RESNET = ((4, 8), (4, 16), (2, 32))


def two_chains(length: int, reach: int, degrees: tuple[int, ...], seed: int) -> LayerGraph:
    """Two chains of `length` layers; layer i of one feeds layer i + reach of the other.

    Every layer has its own times and sizes (seconds and bytes of a layer of a large transformer,
    within 40 %), each degree a plain and a recomputing option.
    """
    draw = random.Random(seed)
    nodes: list[LayerNode] = []
    for chain in range(2):
        for i in range(length):
            time_one = 0.030 * draw.uniform(0.6, 1.4)
            weights = 1.7e8 * draw.uniform(0.6, 1.4)
            stash = 6e8 * draw.uniform(0.6, 1.4)
            options = {
                t: (
                    LayerOption(
                        "vanilla", time_one / t**0.8, weights / t, stash / t, 2 * weights / t
                    ),
                    LayerOption(
                        "activation recomp",
                        time_one / t**0.8 * 1.33,
                        weights / t,
                        5e7,
                        2 * weights / t + stash / t - 5e7,
                    ),
                )
                for t in degrees
            }
            nodes.append(LayerNode(chain * length + i, f"chain{chain}.{i}", options))
    edges = [
        Edge(chain * length + i, chain * length + i + 1, 3e7)
        for chain in range(2)
        for i in range(length - 1)
    ]
    edges += [
        Edge(chain * length + i, (1 - chain) * length + i + reach, 3e7)
        for chain in range(2)
        for i in range(length - reach)
    ]
    return LayerGraph(tuple(nodes), tuple(edges))


def measure(name: str, make: Callable[[], LayerGraph], options: PlanOptions) -> None:
    """Plan once and print processor time, wall time, the result and the peak memory so far."""
    graph = make()
    wall, cpu = time.perf_counter(), time.process_time()
    found = plan(graph, options, progress=print if "-v" in sys.argv else None)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    facts = {key: int(value) for key, value in found.statistics.items()}
    print(
        f"{name}: time per sample {found.time_per_sample}, {len(found.stages)} stages, "
        f"{cpu:.2f} s processor, {wall:.2f} s wall, {peak:.2f} GiB peak, {facts}",
        flush=True,
    )


def main() -> None:
    """Run the parts named on the command line, all without names."""
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")]
    for part, file, batch, cases in (
        ("bert", "bert32a100.json", 1920, BERT),
        ("resnet", "resnet.json", 7680, RESNET),
    ):
        for memory, devices in cases if part in wanted or not wanted else ():
            options = PlanOptions(devices, memory * GIB, 25 * GIB, batch)
            path = SHARED / "piper" / file
            name = f"{part} {memory} GiB K={devices}"
            measure(name, lambda path=path: read_layer_graph(path), options)
    for degrees in ((1,), (1, 2)) if "synthetic" in wanted or not wanted else ():
        options = PlanOptions(32, 16 * GIB, 25 * GIB, 960)
        name = f"synthetic K=32 t={degrees}"
        measure(name, lambda degrees=degrees: two_chains(126, 100, degrees, 0), options)


if __name__ == "__main__":
    main()
