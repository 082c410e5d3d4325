"""The validated build of the engine ``cpu``, which watches every access of a dispatch.

It turns a unit and a dispatch into raw facts (``validation_facts``), which the package ``validation`` judges. clang
writes the LLVM IR of a kernel; ``uninitialized_reads`` and ``validating_code`` insert calls before it is optimized,
``access_sites`` afterwards. ``validated_build`` compiles the result, and ``validated_run`` runs it on separated copies
(``validated_memory``). The functions called are in ``runtime/validation.c``; they write a ``run_record``, from which
``fact_reader`` derives the facts.
"""
