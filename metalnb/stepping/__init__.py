"""Stepping: repeat a kernel's call and record each step of the threads of one threadgroup, statement by statement.

``trace_call`` makes the call once more: ``statements`` puts a call before each statement of the cell, the engine
``cpu`` runs that (its `traced_run`), ``trace_reader`` reads what it told, ``variable_values`` the variables,
``lockstep`` says when each thread does what it does, ``array_images`` which arrays are drawn as images, and
``wrong_write`` where a wrong element is written.
``trace_record`` is the record, which ``trace_text`` shows as text and ``stepper`` as a page that needs no kernel behind
it. The call runs on copies: the caller's arrays must not change here.
"""

from .trace_record import KernelTrace, Touch, TraceAim, TraceImage, TraceMemory, TraceStep

__all__ = ["KernelTrace", "Touch", "TraceAim", "TraceImage", "TraceMemory", "TraceStep"]
