"""Prove a kernel's accesses in bounds and its loops short, on the host, for each dispatch; independent of engines.

Input: a module read by ``engine/llvm``, and an engine's description of its entry point (`EntryPoint`). Output: the
kernel's accesses, where its pointers come from, and for each dispatch a `Proof`: the accesses not proven in bounds, and
the loops not proven short. The engine checks those at run time.
"""
