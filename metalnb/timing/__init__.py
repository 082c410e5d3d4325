"""How fast a kernel is, how fast it could be, and what holds it back.

``sample`` runs it and takes the times, ``traffic`` counts the bytes, ``limits`` measures what the machine could do;
``measure`` and ``compare`` put them into the records of ``record``, which ``text``, ``card`` and ``plot`` show.
"""
