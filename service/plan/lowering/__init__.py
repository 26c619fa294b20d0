"""Lowering of a plan to a program: kernels, and the exchanges between them."""
