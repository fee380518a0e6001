"""The CUDA device; CuPy is imported in this folder alone."""
