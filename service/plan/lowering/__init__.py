"""From a plan to a program: kernels at their places, and the exchanges between them."""
