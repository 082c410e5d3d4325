"""The checked build of the engine ``cpu``: a dispatch with every access watched.

It turns a unit and a dispatch into raw facts (``checked_facts``), which the package ``validation`` judges. clang writes
LLVM's text of a kernel; ``own_variables`` and ``watched_code`` put calls in, ``access_sites`` does so once the text has
been optimised, ``checked_build`` compiles it all, and ``checked_run`` runs it on copies that lie apart
(``checked_memory``). What is called is in ``runtime/checks.c``.
"""
