"""Stepping: repeat a kernel's call and record each step of the threads of one threadgroup, statement by statement.

``trace_call`` repeats the call: ``statements`` inserts a logging call before each statement of the cell, the engine
``cpu`` runs the result (its `traced_run`), ``trace_reader`` decodes the log, ``variable_values`` the variables,
``lockstep`` orders the threads' steps in time, ``image_contents`` chooses the part of an array that is drawn, and
``wrong_write`` finds where a wrong element is written. ``trace_record`` is the record, which ``trace_text`` shows as
text and ``stepper`` as a page that needs no running notebook kernel. The call runs on copies: the caller's arrays must
not change here.
"""

from .trace_record import KernelTrace, Touch, TraceAim, TraceImage, TraceMemory, TraceStep

__all__ = ["KernelTrace", "Touch", "TraceAim", "TraceImage", "TraceMemory", "TraceStep"]
