"""What a program computes: the NumPy interpreter of global, loop-form and device-local programs."""

from .faults import DeadlockError, InterpreterError
from .interpreter import has_meaning, run, run_spmd

__all__ = ["DeadlockError", "InterpreterError", "has_meaning", "run", "run_spmd"]
