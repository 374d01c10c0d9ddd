"""What does a plan cost on one device of a mesh: operations, memory, time?

Time is a sum over the steps: an op takes the longer of computing and moving its bytes (a roofline),
a collective what the ring algorithm sends over the link, and neither less than the launch floor.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from ..engine.plan import Compute, Plan, Reshard
from .device import Device
from .memory import peak_memory
from .work import work_of


@dataclass(frozen=True)
class Estimate:
    """On one device, for one run of the program: operations, bytes, seconds."""

    flops: int
    argument_bytes: int
    peak_memory_bytes: int
    compute_seconds: float
    collective_seconds: float

    @property
    def seconds(self) -> float:
        """The estimated time; computing and communicating do not overlap."""
        return self.compute_seconds + self.collective_seconds


def estimate(plan: Plan, device: Device, donated: Collection[int] = ()) -> Estimate:
    """The cost of a plan; `donated` are the arguments whose memory results take over."""
    flops = 0
    computing = communicating = 0.0
    for step in plan.steps:
        if isinstance(step, Compute):
            work = work_of(plan, step)
            flops += step.count * work.flops
            if work.bytes:
                computing += step.count * max(
                    work.flops / device.peak(work.dtype),
                    work.bytes / device.memory_bandwidth,
                    device.launch,
                )
            else:
                computing += step.count * work.flops / device.peak(work.dtype)
        else:
            communicating += _reshard_seconds(plan, step, device)
    return Estimate(
        flops,
        plan.argument_bytes(),
        peak_memory(plan, donated).bytes,
        computing,
        communicating,
    )


def _reshard_seconds(plan: Plan, step: Reshard, device: Device) -> float:
    """Ring algorithms: the bytes over the link, and a latency for each hop."""
    if step.kind == "all_slice":
        return 0.0
    group = prod(plan.sizes[axis] for axis in step.move.group)
    hops = {"all_reduce": 2 * (group - 1), "collective_permute": 1}.get(step.kind, group - 1)
    once = device.launch + hops * device.link_latency + step.ring_bytes / device.link_bandwidth
    return step.count * once
