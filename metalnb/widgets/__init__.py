"""Live views of kernels in a notebook, each with a static picture for where no widget can run.

``dashboard`` turns a kernel's knobs and measures it anew at each turn; ``monitor`` looks on at every dispatch; ``tune``
sweeps threadgroups and function constants; ``explore`` shows a kernel's output as a picture under sliders. They rest on
``page`` and ``plot`` (HTML and SVG), ``show`` (widget and picture in one display), ``worker`` (a thread that does the
latest thing wanted), ``knobs`` and ``problem`` (a call's scalars and sizes), and ``quick`` (a short measurement).
"""
