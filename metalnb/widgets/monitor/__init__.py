"""`monitor`: a live table of an engine's dispatches, and a list of them for pandas.

``recorder`` notes each dispatch as a record of ``dispatch_log``, ``log_view`` renders them, ``monitor_buttons``
controls it, and ``live_monitor`` joins them. The monitor reads the engine's reports and changes nothing.
"""

from .live_monitor import Monitor, monitor

__all__ = ["Monitor", "monitor"]
