"""Does XLA with Shardy compile what we write for it to the placements that we decided?

In a process of its own: XLA needs its devices before JAX is imported. Compared are the shardings of
all arguments and results of the compiled program, by the tiles that they give to the devices.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import json, sys
import jax, numpy as np
from jax._src.lib import xla_client
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import Mesh, NamedSharding, PartitionSpec

asked = json.load(sys.stdin)
names, sizes = zip(*asked["mesh"])
devices = jax.devices()[: int(np.prod(sizes))]
options = xla_client.CompileOptions()
build = options.executable_build_options
options.num_partitions = build.num_partitions = len(devices)
options.num_replicas = build.num_replicas = 1
build.use_spmd_partitioning = build.use_shardy_partitioner = True
build.device_assignment = xla_client.DeviceAssignment.create(
    np.arange(len(devices)).reshape(1, len(devices)))
compiled = devices[0].client.compile_and_load(
    asked["text"].encode(), xla_client.DeviceList(tuple(devices)), options)
mesh = Mesh(np.array(devices).reshape(sizes), names)
different, compared = [], 0
for side, made in (("arguments", compiled.get_parameter_shardings()),
                   ("results", compiled.get_output_shardings())):
    assert len(asked[side]) == len(made), (side, len(asked[side]), len(made))
    for entry, sharding in zip(asked[side], made):
        spec = PartitionSpec(*(tuple(axes) or None for axes in entry["placement"]))
        wanted = NamedSharding(mesh, spec)
        got = GSPMDSharding(tuple(devices), sharding)
        compared += 1
        if not got.is_equivalent_to(wanted, len(entry["shape"])):
            different.append([entry["name"], entry["placement"], str(got)])
print(json.dumps([compared, different]))
"""

CASES = [
    ("mlp_train", ["batch(axis=batch)", "megatron(axis=model)", "zero3(axis=batch)"], 20),
    ("op_branches", ["batch(axis=batch)"], 2),
    ("it_decode_L2", ["batch(axis=batch)", "megatron(axis=model)"], 20),  # loops with invariants
]


@pytest.mark.parametrize(("name", "tactics", "least"), CASES, ids=[case[0] for case in CASES])
def test_xla_places_as_we_do(shared: Path, name: str, tactics: list[str], least: int) -> None:
    from partir.partir_dialect.mesh import Mesh
    from partir.runtime.partition import partition
    from partir.runtime.program import read

    mesh = Mesh(batch=4, model=2)
    result = partition(read(shared / "programs" / f"{name}.mlir"), mesh, tactics)
    asked = {
        "text": result.emit("sdy"),
        "mesh": mesh.axes,
        "arguments": result.entries("arguments"),
        "results": result.entries("results"),
    }
    assert any(axes for entry in asked["arguments"] for axes in entry["placement"])
    flags = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
    )
    assert child.returncode == 0, child.stderr[-2000:]
    compared, different = json.loads(child.stdout.splitlines()[-1])
    assert different == []
    assert compared >= least
