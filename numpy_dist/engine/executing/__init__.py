"""Plans: statements become groups of loops, with their messages, memory and kernels."""
