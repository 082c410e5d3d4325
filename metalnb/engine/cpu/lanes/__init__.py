"""Kernels in vector registers, for the engine ``cpu``.

A unit comes in. ``vector_build`` has clang write one thread of it as LLVM's text, the vectoriser put 32 of them into
vector registers, and clang make an object file of that; ``vector_binary`` is what the engine launches, with the forms
that its dispatches have needed so far; ``vector_report`` says on the kernel's card how it runs.
"""
