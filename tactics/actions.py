"""Which actions are there beside those of the session? Tiling what uses a value.

A value that is summed over an axis cannot be tiled along it where it is made; its users can.
The sum then becomes a reduce_scatter, which is what sequence parallelism is made of.
"""

from __future__ import annotations

from ..engine.graph import RESULT
from ..engine.session import Outcome, Session
from ..engine.state import NONE


def tile_uses(session: Session, value: int, dim: int, axis: str) -> Outcome:
    """Every op that uses the value and is not decided for the axis takes the factor of `dim`.

    Results of the program are left alone, and so is an op that cannot; `refused` if none can.
    """
    state, graph = session.state, session.graph
    atoms = [state.axes.index(atom) for atom in session.atoms[axis]]
    decided = 0
    for op, k in graph.uses[value]:
        slot = graph.slots[op]
        shape = graph.op_shapes[op]
        if graph.kinds[op] == RESULT or k >= len(shape.inputs):
            continue
        mark = state.mark()
        for atom in atoms:
            factor = state.factor_for(op, shape.inputs[k][dim], atom)
            if factor < 0 or state.entry[atom][slot] != NONE:
                state.undo(mark)
                break
            state.decide(slot, atom, factor)
        else:
            decided += 1
    if decided:
        return Outcome("done")
    return Outcome("refused", f"no op that uses it can take {axis} on dimension {dim}")
