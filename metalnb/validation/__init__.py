"""Validation: repeat a kernel's call with its accesses watched, and report its errors and its use of the buffers.

``validated_call`` repeats the call on copies in the validated build of the engine `cpu`; ``device_run`` repeats it on
its own device under Metal's shader validation. ``judgment`` derives findings from the raw facts, ``expected_outputs``
compares the outputs with the expected ones. ``access_report`` is the record, ``sentences`` puts it into words,
``report_view`` and ``difference_view`` render it. ``twin`` compiles a kernel from a rewritten source, for the puzzles.
"""

from .access_report import Event, Finding, Party, Validation
from .run import validate
from .sentences import sentence
from .twin import twin_of
from .validated_call import watch

__all__ = ["Event", "Finding", "Party", "Validation", "sentence", "twin_of", "validate", "watch"]
