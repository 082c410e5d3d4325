"""What a kernel did to its buffers, access by access: beyond the end, never written, written by two threads.

run.py      a call, made once more with buffers that watch themselves
rewrite.py  the text of that twin; watched.h is what its buffers are
twin.py     that text, compiled as its kernel was
access_log.py   the memory that those write into
record.py   what was seen, and what is wrong with it
card.py     that, for a notebook
"""

from .access_report import Conflict, Event, Validation
from .run import validate, watch
from .twin import twin_of

__all__ = ["Conflict", "Event", "Validation", "twin_of", "validate", "watch"]
