"""Timing: immutable records of the time, the bytes and the limits of a kernel, a dispatch or any callable.

``sampling`` runs and times it, ``traffic`` counts the bytes, ``limits`` measures the machine's best rates.
``measure``, ``compare`` and ``roofline`` put these into records, ``bottleneck`` names a kernel's bottleneck, and
``views`` renders the records. Arrays that a kernel writes are restored: the caller's arrays must not change here.
"""
