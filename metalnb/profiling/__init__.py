"""Profiling: a call of a kernel in; what each line of it costs a GPU, counted, out.

``profile_call`` makes the call once more in the engine ``cpu``'s counted build (its `counted_run`) and puts counts
beside the author's lines: ``profile_record`` and ``cost_records`` are the records. ``cost_findings`` says in words what
costs most and what to do, ``device_table`` has figures of GPUs with their sources, and ``time_bounds`` holds the counts
against them. ``profile_text``, ``profile_page`` and ``access_picture`` show it. The call runs on copies: nothing of the
caller's may change here.
"""
