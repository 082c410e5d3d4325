"""Metal kernels in a notebook, on any machine."""

__version__ = "0.1.0"
