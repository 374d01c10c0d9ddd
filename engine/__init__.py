"""What is decided: arrays of a module, the state of its nests, propagation and the plan."""
