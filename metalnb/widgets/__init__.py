"""Live views of a kernel and its arguments: a widget, and a static picture for pages that do not run widgets.

There is one folder per widget: ``dashboard``, ``monitor``, ``tune``, ``explore`` and ``animate``. They share
``live_widget`` (widget and picture in one display), ``html_parts``, ``svg_plots``, ``png_plots`` and ``controls`` (the
parts of a page), ``painter`` (a picture of an array), ``page_events`` (clicks, keys and drags on its page),
``background_work`` (work in a thread), ``bound_call``, ``call_text`` and ``knobs`` (a call that can be repeated with
other arguments), ``threadgroup_choices`` and ``quick_timing``. A widget works on copies of the arrays that the kernel
writes: the caller's arrays must not change here.
"""
