"""Kernels in vector registers, for the engine ``cpu``.

``vector_build`` takes a unit: clang writes one thread of it as LLVM IR, the vectorizer puts 32 of them into vector
registers, and clang compiles that to an object file. ``vector_binary`` has the kernel that the engine launches, with
the forms that its dispatches have needed so far. ``card_facts`` states on the kernel's card how it runs.
"""
