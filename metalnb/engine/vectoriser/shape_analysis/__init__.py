"""How values change from lane to lane, before anything is written.

A function of LLVM's text comes in. ``reducible_flow`` has dominators, loops and control equivalence;
``lane_divergence`` says where lanes part and where they come together again; ``shape_rules`` has a rule for each
opcode, in the terms of ``lane_shapes``, and ``shape_solver`` applies them up to a fixed point. ``interleaving`` decides
how a thread's own arrays lie in memory, ``lifetimes`` which vectors are alive across a barrier.
"""
