"""Write vector code: the LLVM IR of all lanes, from the IR of one thread and the shapes of its values.

``regions`` writes blocks under masks, with the ``edges`` between them, and passes each instruction to
``vector_operations``, ``addresses``, ``vector_memory``, ``atomics``, ``vector_calls`` or ``collectives``. They share a
``function_body``: values as scalars and vectors, and masks; ``text_emitter`` holds the text written. ``lane_loop``
writes operations without a vector form, ``barrier_suspension`` barriers; ``vector_target`` holds everything
that depends on the machine.
"""
