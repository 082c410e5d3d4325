"""Profiling: count what each line of a kernel costs a GPU.

``profile_call`` makes the call once more in the counted build of the engine ``cpu`` (its `counted_run`) and assigns the
counts to the author's lines: ``profile_record`` and ``cost_records`` are the records. ``cost_findings`` says in words
what costs most and what to do, ``device_table`` has figures of GPUs with their sources, ``time_bounds``
derives least times from the counts and these figures, and ``occupancy`` how many threadgroups fit a processor.
``profile_text``, ``profile_page`` and ``access_picture`` show all of it. The call runs on copies: the caller's arrays
must not change here.
"""
