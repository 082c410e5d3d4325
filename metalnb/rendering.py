"""The table of renderers: measure, then record, then render.

A record is plain data and imports nothing that draws it. It derives from `Rendered`, which looks its class up in
`RENDERERS` and imports the function named there when the record is first shown. So a renderer may import the records
that it shows, and ``import metalnb`` loads no renderer. A new record needs a row in the table and nothing else here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

__all__ = ["DISPLAY", "RENDERERS", "MissingPackageError", "Rendered", "render"]

# The modules of the extra `display`, which are needed for drawing but not for computing.
DISPLAY = ("anywidget", "IPython", "ipywidgets", "matplotlib", "PIL")

# Maps each record to the functions that render its forms, all by full name. A form is a MIME type, which becomes part
# of the notebook's output, or "figure", which matplotlib draws on request.
RENDERERS: Mapping[str, Mapping[str, str]] = {
    "engine.engine_list.EngineList": {
        "text/plain": "display.engine_table.engines_text",
        "text/html": "display.engine_table.engines_html",
    },
    "timing.records.Timing": {
        "text/plain": "timing.views.plain_text.timing_text",
        "text/html": "timing.views.html_cards.timing_html",
        "figure": "timing.views.charts.plot_timing",
    },
    "timing.compare.Comparison": {
        "text/plain": "timing.views.plain_text.comparison_text",
        "text/html": "timing.views.html_cards.comparison_html",
    },
    "timing.limits.Limits": {
        "text/plain": "timing.views.plain_text.limits_text",
        "text/html": "timing.views.html_cards.limits_html",
    },
    "timing.roofline.Roofline": {
        "text/plain": "timing.views.plain_text.roofline_text",
        "text/html": "timing.views.html_cards.roofline_html",
        "image/png": "timing.views.charts.roofline_png",
        "figure": "timing.views.charts.roofline_figure",
    },
    "profiling.profile_record.Profile": {
        "text/plain": "profiling.profile_text.profile_text",
        "text/html": "profiling.profile_page.profile_html",
    },
    "stepping.trace_record.KernelTrace": {
        "text/plain": "stepping.trace_text.trace_text",
        "text/html": "stepping.stepper.trace_html",
    },
    "validation.access_report.Validation": {
        "text/plain": "validation.report_view.text",
        "text/html": "validation.report_view.html",
    },
}


class MissingPackageError(ModuleNotFoundError):
    """A package of the extra ``display`` is needed and not installed."""


class Rendered:
    """Base class of the records that a notebook can display."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(render(self, "text/plain"))

    def _repr_html_(self) -> str:
        try:
            return str(render(self, "text/html"))
        except MissingPackageError as error:
            return f"<pre>{escape(repr(self))}\n\n{escape(str(error))}</pre>"

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": self._repr_html_()}
        for form in _forms(type(self)):
            if "/" in form and form not in bundle:
                with contextlib.suppress(MissingPackageError):  # the HTML names the missing package
                    bundle[form] = render(self, form)
        return bundle


def render(record: Rendered, form: str, *args: Any) -> Any:
    """Return a record in one of its forms (see `RENDERERS`); ``args`` go to the function that renders it."""
    try:
        return _renderer(_forms(type(record))[form])(record, *args)
    except ModuleNotFoundError as error:
        if error.name not in DISPLAY:
            raise
        raise MissingPackageError(f"{error.name} is missing. pip install 'metalnb[display]'", name=error.name) from None


def _forms(record: type) -> Mapping[str, str]:
    """Return the row of a class, or of its base class."""
    package = __package__ or ""
    names = (f"{base.__module__}.{base.__qualname__}".removeprefix(f"{package}.") for base in record.__mro__)
    return next(RENDERERS[name] for name in names if name in RENDERERS)


@functools.cache
def _renderer(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    renderer: Callable[..., Any] = getattr(importlib.import_module(f"{__package__}.{module}"), function)
    return renderer
