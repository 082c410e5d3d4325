"""Metal's shader validation: compile a kernel with the system's own checks, and report their findings."""

from __future__ import annotations

import dataclasses
from typing import Any

from metalnb.engine.unit import Unit
from metalnb.errors import Diagnostic, KernelFault

from .bindings import Bindings
from .fast_enumeration import enumerate_objects
from .libraries import author_text, diagnostic_at_kernel

__all__ = ["compile_with_validation", "read_findings"]


def compile_with_validation(bindings: Bindings, device: Any, function: Any) -> tuple[Any, Any]:
    """Compile a function with shader validation.

    Returns
    -------
    (MTLComputePipelineState or None, NSError or None)
        Neither state nor error before macOS 15, which cannot validate a single pipeline.
    """
    metal = bindings.metal
    descriptor = metal.MTLComputePipelineDescriptor.alloc().init()
    if not hasattr(descriptor, "setShaderValidation_"):
        return None, None
    descriptor.setComputeFunction_(function)
    descriptor.setShaderValidation_(metal.MTLShaderValidationEnabled)
    state, error = device.newComputePipelineStateWithDescriptor_options_reflection_error_(
        descriptor, metal.MTLPipelineOptionNone, None, None
    )
    if state is not None and state.shaderValidation() != metal.MTLShaderValidationEnabled:
        return None, None
    return state, error


def read_findings(bindings: Bindings, unit: Unit, command: Any, fault: KernelFault | None) -> tuple[Diagnostic, ...]:
    """Return the findings of a completed run, each at the author's line, or at the kernel's.

    Parameters
    ----------
    bindings : Bindings
    unit : Unit
    command : MTLCommandBuffer
    fault : KernelFault or None
        The command buffer's fault.
    """
    text = author_text(unit)
    diagnostics = []
    for log in enumerate_objects(bindings, command.logs()):
        if log.type() != bindings.metal.MTLFunctionLogTypeValidation:
            continue
        message = str(log.description())
        location = log.debugLocation()
        diagnostic = None
        if location is not None:
            diagnostic = text.diagnostic(int(location.line()), int(location.column()), message)
        diagnostics.append(diagnostic or _at_kernel(unit, message))
    if fault is not None:
        diagnostics.append(_at_kernel(unit, str(fault)))
    return tuple(diagnostics)


def _at_kernel(unit: Unit, message: str) -> Diagnostic:
    return dataclasses.replace(diagnostic_at_kernel(unit, ""), message=message)
