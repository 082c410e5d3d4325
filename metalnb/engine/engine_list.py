"""Records of the engines that can run on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metalnb.rendering import Rendered

__all__ = ["EngineList", "EngineStatus"]


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """One engine on this machine.

    Attributes
    ----------
    name : str
    available : bool
    device : str
        The device's name, or an empty string.
    reason : str
        Why it cannot run here and how to fix that; empty if it can.
    versions : tuple of (str, str)
        The name and version of each package or driver that it runs on.
    """

    name: str
    available: bool
    device: str = ""
    reason: str = ""
    versions: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.device}" if self.available else f"{self.name}: not here: {self.reason}"


class EngineList(Rendered, dict[str, EngineStatus]):
    """The status of each engine by its name; shown as a table.

    Attributes
    ----------
    chosen : str
        The engine in use, with its device's index if it has one; empty if none can run.
    reason : str
        Why it is in use, or why none is.
    """

    def __init__(self, statuses: Mapping[str, EngineStatus], chosen: str, reason: str) -> None:
        super().__init__(statuses)
        self.chosen = chosen
        self.reason = reason
