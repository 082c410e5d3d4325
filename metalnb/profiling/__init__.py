"""Profiling: count what each line of a kernel costs a GPU.

``profile_call`` repeats the call in the counted build of the engine ``cpu`` (its `counted_run`) and assigns the
counts to the author's lines: ``profile_record`` and ``cost_records`` are the records. ``cost_findings`` describes
the highest costs and their remedies, ``device_table`` has figures of GPUs with their sources (Apple's are from
``apple_chips``), ``time_bounds`` derives lower bounds on times from them, and ``occupancy`` computes how many
threadgroups fit a processor.
``profile_text``, ``profile_page`` and ``access_picture`` show all of it. The call runs on copies: the caller's arrays
must not change here.
"""
