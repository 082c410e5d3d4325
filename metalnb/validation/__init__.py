"""Validation: a call of a kernel in; what it did to its buffers, access by access, out.

``run`` makes the call once more with buffers that record their accesses: ``watched_source`` makes the text of that
twin (its buffers are in ``watched.h``), ``twin`` compiles it as the kernel was compiled, ``access_log`` is the memory
that it writes to. ``access_report`` is the record of what was found, ``report_view`` renders it. The call runs on
copies: nothing of the caller's may change here.
"""

from .access_report import Conflict, Event, Validation
from .run import validate, watch
from .twin import twin_of

__all__ = ["Conflict", "Event", "Validation", "twin_of", "validate", "watch"]
