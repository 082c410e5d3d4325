"""The checked build of the engine ``cpu``, which watches every access of a dispatch.

It turns a unit and a dispatch into raw facts (``checked_facts``), which the package ``validation`` judges. clang writes
the LLVM IR of a kernel; ``own_variables`` and ``watched_code`` insert calls before it is optimised, ``access_sites``
afterwards. ``checked_build`` compiles the result, and ``checked_run`` runs it on separated copies (``checked_memory``).
The functions called are in ``runtime/checks.c``.
"""
