"""The text of a whole module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ..raw import RESOURCES
from .generic import GenericPrinter


def print_module(module: ModuleOp, *, pretty: bool = False, locations: bool = False) -> str:
    """The text of a module, in generic form or as JAX prints it (`pretty`).

    With `locations` every op ends in `loc(#loc…)` and the aliases follow the module.
    """
    if pretty:
        from .pretty import PrettyPrinter

        printer: GenericPrinter = PrettyPrinter(locations=locations)
    else:
        printer = GenericPrinter(locations=locations)
    printer.op(module, "")
    resources = module.attributes.get(RESOURCES)
    lines = printer.lines
    lines.extend(printer.places.definitions)
    if isinstance(resources, StringAttr):
        lines.extend(("", resources.data))
    lines.append("")
    return "\n".join(lines)
