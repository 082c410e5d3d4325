"""`monitor`: the dispatches of an engine in; a live table of them, and a list for pandas, out.

``recorder`` notes each dispatch as a record of ``dispatch_log``, ``log_view`` renders them, ``monitor_buttons``
controls it, and ``live_monitor`` joins them. It reads what the engine reports and changes nothing.
"""

from .live_monitor import Monitor, monitor

__all__ = ["Monitor", "monitor"]
