"""Writing vector code: LLVM's text of all lanes, from the text of one thread and the shapes of its values.

``regions`` writes blocks under masks, with the ``edges`` between them, and hands each instruction to
``vector_operations``, ``addresses``, ``vector_memory``, ``atomics``, ``vector_calls`` or ``collectives``. They share a
``function_body``: values as scalars and vectors, and masks; ``text_emitter`` holds what was written. ``lane_loop`` is
for what has no vector form, ``coroutines`` for barriers, and ``vector_target`` has what depends on the machine.
"""
