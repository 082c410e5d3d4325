"""Write frames as a GIF or MP4, and as a strip of pictures for static pages."""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from html import escape
from itertools import chain
from typing import Any

import numpy as np

from metalnb.errors import ArgumentError

__all__ = ["Filmstrip", "enlarge", "gif", "mp4", "strip_html"]

_SMALLEST_FRAME = 256  # smaller frames are enlarged to this many pixels, by a whole factor
_PICTURES = 6  # pictures in a strip
_THUMB = 180  # most pixels of a picture's longer side


class Filmstrip:
    """Small pictures of a simulation from its start to now: if there are too many, every second one is dropped.

    Parameters
    ----------
    spacing : int
        The initial number of frames between two pictures.
    """

    def __init__(self, spacing: int = 1) -> None:
        self.spacing = spacing
        self.pictures: list[tuple[int, bytes]] = []

    def add(self, frame: int, steps: int, png: Any) -> None:
        """Add a frame if it is due; ``png`` makes its picture."""
        if frame % self.spacing:
            return
        self.pictures.append((steps, png()))
        if len(self.pictures) > _PICTURES:
            self.pictures = self.pictures[::2]
            self.spacing *= 2


def thin(array: Any) -> Any:
    """Return every n-th row and column of an array, with n chosen so that the picture is small."""
    step = -(-max(array.shape[:2]) // _THUMB)
    return array[::step, ::step]


def strip_html(pictures: Iterable[tuple[int, bytes]]) -> str:
    """Render small pictures side by side: as a table, for a page that strips every style."""
    images_of = list(pictures)
    images = "".join(
        f'<td><img alt="step {steps:,}" src="data:image/png;base64,{base64.b64encode(png).decode()}"/></td>'
        for steps, png in images_of
    )
    captions = "".join(f"<td>{escape(f'step {steps:,}')}</td>" for steps, _ in images_of)
    table = f"<table><tbody><tr>{images}</tr><tr>{captions}</tr></tbody></table>"
    return f'<div class="metalnb-scroll metalnb-film">{table}</div>'


def enlarge(frames: Iterable[Any]) -> Iterator[Any]:
    """Enlarge small frames by a whole factor, so that their elements stay squares."""
    for frame in frames:
        factor = max(1, _SMALLEST_FRAME // max(frame.shape[:2]))
        yield frame.repeat(factor, 0).repeat(factor, 1) if factor > 1 else frame


def gif(frames: Iterable[Any], palette: Any, rate: float) -> bytes:
    """Return frames as a GIF that repeats.

    Parameters
    ----------
    frames : iterable of numpy.ndarray
        uint8: entries of the palette, of shape (H, W), or colors, of shape (H, W, 3 or 4).
    palette : numpy.ndarray or None
    rate : float
        Frames per second; a GIF counts in hundredths of a second, and browsers show none for less than two.
    """
    from PIL import Image

    def images() -> Iterator[Any]:
        for frame in frames:
            image = Image.fromarray(np.ascontiguousarray(frame[..., :3] if frame.ndim == 3 else frame))
            if palette is not None:
                image.putpalette(palette.tobytes())
            yield image

    frames_of = images()
    file = io.BytesIO()
    duration = max(2, round(100 / rate)) * 10
    next(frames_of).save(file, "GIF", save_all=True, append_images=frames_of, duration=duration, loop=0, optimize=False)
    return file.getvalue()


def mp4(caller: str, frames: Iterable[Any], palette: Any, rate: float, path: str) -> None:
    """Write frames as an MP4, by ffmpeg.

    Raises
    ------
    ArgumentError
        If ffmpeg is missing, or fails.
    """
    program = shutil.which("ffmpeg")
    if program is None:
        raise ArgumentError(f"{caller}: an MP4 needs the program ffmpeg, which is not installed. Save a .gif instead.")
    colors = (palette[frame] if palette is not None else frame[..., :3] for frame in frames)
    first = next(iter(colors))
    height, width = first.shape[:2]
    command = [
        program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
        "-r", f"{rate:g}", "-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p",
        "-movflags", "+faststart", path,
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        messages = _feed(process, (np.ascontiguousarray(f).tobytes() for f in chain([first], colors)))
    if process.returncode:
        raise ArgumentError(f"{caller}: ffmpeg could not write {path}: {messages.strip()}")


def _feed(process: subprocess.Popen[bytes], frames: Iterable[bytes]) -> str:
    """Write frames to a process; return its messages, even if it ends early."""
    assert process.stdin is not None  # noqa: S101  (it was asked for)
    assert process.stderr is not None  # noqa: S101
    try:
        for frame in frames:
            process.stdin.write(frame)
    except BrokenPipeError:
        pass
    finally:
        process.stdin.close()
    return process.stderr.read().decode(errors="replace")
