"""What a kernel's accesses and loops do in a dispatch, found on the host from LLVM's text: no engine is known here.

In comes a module that ``engine/llvm`` has read, with what an engine says of its entry point (`EntryPoint`). Out come
its accesses, where its pointers come from, and for each dispatch a `Proof`: the accesses that are not known to be
right, and the loops that are not known to be short. What cannot be proven is the engine's to check.
"""
