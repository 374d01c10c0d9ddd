"""What changes the program: rewrites of the IR, each a pass from valid IR to valid IR."""
