"""metalcompute's error, its return codes, and its messages."""

from __future__ import annotations

from enum import IntEnum

from metalnb.errors import MetalnbError

__all__ = ["Code", "error", "error_of"]


class error(MetalnbError):  # noqa: N801  (metalcompute's name)
    """The error that metalcompute raises."""


class Code(IntEnum):
    """The return codes of metalcompute.swift.

    From `NOT_READY_TO_RUN` down, its numbers differ by one from those of metalcompute.c, which holds the messages. So a
    user who runs too early reads "Failed to make output buffer", and a user whose pipeline fails reads "Cannot create
    command encoder".
    """

    CANNOT_CREATE_DEVICE = -1
    NOT_READY_TO_COMPILE = -3
    FAILED_TO_FIND_FUNCTION = -5
    NOT_READY_TO_COMPUTE = -6
    FAILED_TO_MAKE_INPUT_BUFFER = -7
    NOT_READY_TO_RUN = -8
    FAILED_TO_MAKE_OUTPUT_BUFFER = -8
    CANNOT_CREATE_PIPELINE_STATE = -11
    # metalcompute.c raises these, and numbers them itself.
    UNSUPPORTED_INPUT_FORMAT = -15
    UNSUPPORTED_OUTPUT_FORMAT = -16
    FUNCTION_NOT_FOUND = -1002
    COULD_NOT_MAKE_BUFFER = -1003
    BUFFER_NOT_FOUND = -1004
    COUNT_NOT_GIVEN = -2002


# metalcompute.c, mc_err
_TEXTS = {
    -1: "Cannot create device",
    -3: "Not ready to compile",
    -5: "Failed to find function",
    -6: "Not ready to compute",
    -7: "Failed to make input buffer",
    -8: "Failed to make output buffer",
    -11: "Cannot create command encoder",
    -15: "Unsupported input format",
    -16: "Unsupported output format",
    -1002: "Function not found",
    -1003: "Could not make buffer",
    -1004: "Buffer not found",
    -2002: "First argument should be an integer kernel count",
}


def error_of(code: Code) -> error:
    """Return the error for a return code."""
    return error(_TEXTS[code])
