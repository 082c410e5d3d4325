"""Validation: run a kernel's call with its accesses watched, and report how it used its buffers and what is wrong.

``watched_call`` makes the call once more, on copies, in the engine `cpu`'s checked build, ``device_run`` on its own
device under Metal's shader validation. ``judgement`` derives findings from the raw facts, ``expected_outputs`` compares
the outputs with the expected ones. ``access_report`` is the record, ``sentences`` says it in words, ``report_view`` and
``difference_view`` render it. ``twin`` compiles a kernel from another text, for the puzzles.
"""

from .access_report import Event, Finding, Party, Validation
from .run import validate
from .sentences import sentence
from .twin import twin_of
from .watched_call import watch

__all__ = ["Event", "Finding", "Party", "Validation", "sentence", "twin_of", "validate", "watch"]
