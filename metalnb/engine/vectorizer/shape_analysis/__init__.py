"""Analyze how values change from lane to lane, before any code is written.

The input is a function in LLVM IR. ``lane_flow`` has the order of blocks and control equivalence;
``lane_divergence`` finds where lanes diverge and reconverge; ``shape_rules`` has a rule for each opcode, in terms of
``lane_shapes``, and ``shape_solver`` applies them up to a fixed point. ``interleaving`` decides on the memory layout of
thread arrays, ``lifetimes`` which vectors are alive across a barrier.
"""
