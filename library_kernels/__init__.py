"""The kernel library: one table of operations and their ``.metal`` files (imported as ``metalnb.library_kernels``)."""

if __name__ == "library_kernels":
    raise ImportError("the folder library_kernels/ is the package metalnb.library_kernels: import that instead")
