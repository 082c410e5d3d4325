"""``metalnb doctor``: what it reports on this machine, and on machines where something is missing."""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import __main__, doctor, engine
from metalnb.doctor import Checkup, EngineTrial, examine, write

ENGINE = engine.current().name  # this machine's engine
ENGINES = ["metal", "metal:metalcompute", "cuda", "cpu"]  # in a new process, in which no test has registered another


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "metalnb", *words],
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip


@functools.cache
def report(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the doctor where no engine is named."""
    return command("doctor", *options, METALNB_ENGINE="")


@pytest.fixture(scope="module")
def examined() -> Checkup:
    return examine()


def checkup(*trials: EngineTrial, **changes: Any) -> Checkup:
    parts = {"cache": "/somewhere", "cache_bytes": 0, "cache_entries": 0, "cache_problem": "", **changes}
    return Checkup(versions={"metalnb": "1.0"}, system="Linux x86_64", trials=trials, **parts)


def test_doctor_lists_every_engine_and_succeeds() -> None:
    done = report()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"metalnb {mnb.__version__} · Python {sys.version.split()[0]} · ")
    assert re.findall(r"^[✓✗] (\S+)", done.stdout, re.MULTILINE) == ENGINES
    assert re.search(r"^    1,000,003 threads, every value right: [\d.]+ ms", done.stdout, re.MULTILINE)
    assert "\x1b" not in done.stdout  # no terminal, no colors


def test_json_and_text_have_the_same_report() -> None:
    done = report("--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["works"] is True
    assert data["cache"] == os.environ["METALNB_CACHE"]
    trials = {t["name"]: t for t in data["trials"]}
    assert list(trials) == ENGINES
    assert trials[ENGINE]["works"]
    assert trials[ENGINE]["run_seconds"] > 0
    assert trials[ENGINE]["compile_seconds"] > 0


def test_missing_engine_names_the_fix(examined: Checkup) -> None:
    for trial in examined.trials:
        assert trial.works != bool(trial.problem)
    (metal,) = (t for t in examined.trials if t.name == "metal")
    if sys.platform != "darwin":
        assert "pip install pyobjc-framework-Metal" in metal.problem
        assert f"✗ metal\n    {metal.problem}\n" in write(examined)


@pytest.mark.skipif(sys.platform == "darwin", reason="another engine works on a Mac")
def test_the_status_is_1_when_no_engine_works(tmp_path: Path) -> None:
    done = command("doctor", METALNB_CLANG=str(tmp_path / "clang"))
    assert done.returncode == 1
    assert "No engine works on this machine." in done.stdout
    assert "No such file or directory" in done.stdout


def test_a_wrong_result_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    right = doctor._expected_result(np.arange(doctor._THREADS, dtype=np.uint32))
    wrong = right.copy()
    wrong[7] += 1
    monkeypatch.setattr(doctor, "_expected_result", lambda _x: wrong)
    (trial,) = (t for t in examine().trials if t.name == ENGINE)
    assert not trial.works
    assert "1 of 1,000,003 values are wrong" in trial.problem


def test_any_driver_exception_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        message = "undefined symbol: clGetPlatformIDs"
        raise OSError(message)

    monkeypatch.setattr(engine, "named", broken)
    broken_machine = examine()
    assert {t.problem for t in broken_machine.trials} == {"OSError: undefined symbol: clGetPlatformIDs"}
    assert not broken_machine.works


def test_unwritable_cache_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = command("doctor", METALNB_CACHE=str(tmp_path / "file" / "cache"))
    assert "cannot be written, so every cell is compiled again: set METALNB_CACHE to another folder" in done.stdout


def test_unavailable_chosen_engine_is_reported() -> None:
    done = command("doctor", METALNB_ENGINE="abacus")
    assert "Cells cannot run: unknown engine 'abacus'" in done.stdout


def test_reason_for_the_chosen_engine_is_shown() -> None:
    assert f"Ready: cells run on engine '{ENGINE}': " in report().stdout
    done = command("doctor", METALNB_ENGINE="cpu")
    assert "Ready: cells run on engine 'cpu': METALNB_ENGINE names it. In a notebook: %load_ext metalnb" in done.stdout
    data = json.loads(report("--json").stdout)
    assert (data["chosen"], data["chosen_why"]) == (ENGINE, "it is the first that can run here")


@pytest.mark.parametrize("chosen", ["cuda", "cuda:1"])
def test_an_engine_that_opens_and_computes_wrongly_is_not_ready(chosen: str) -> None:
    trials = EngineTrial("cuda", problem="3 values are wrong"), EngineTrial("cpu", works=True)
    text = write(checkup(*trials, chosen=chosen, chosen_why="it is the first that can run here"))
    assert text.endswith(
        f"Not ready: cells run on engine '{chosen}': it is the first that can run here, and it failed (see above). "
        "METALNB_ENGINE=cpu chooses one that works."
    )


def test_colors_and_marks_are_left_out_of_plain_text() -> None:
    good = EngineTrial("good", "Device", {"Driver": "Driver 7", "lib": "2"}, works=True)
    both = checkup(good, EngineTrial("bad", problem="gone"))
    text = write(both, color=True)
    assert "\x1b[32m✓\x1b[0m \x1b[1mgood\x1b[0m  Device" in text
    assert "\x1b[2mDriver 7 · lib 2\x1b[0m" in text
    plain = write(both, plain=True)
    assert "ok good  Device\n    Driver 7, lib 2\n" in plain
    assert "-- bad\n    gone\n" in plain
    assert plain.isascii()


def test_a_terminal_without_unicode_is_no_obstacle() -> None:
    done = command("doctor", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert f"ok {ENGINE}" in done.stdout


def test_version_is_printed_and_a_missing_command_shows_usage() -> None:
    assert command("--version").stdout == f"metalnb {mnb.__version__}\n"
    done = command()
    assert done.returncode == 2
    assert "usage: metalnb" in done.stderr


def test_missing_package_report_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "metalnb.doctor", None)
    monkeypatch.delattr(mnb, "doctor")
    assert __main__.main(["doctor"]) == 1
    assert "pip install metalnb" in capsys.readouterr().err
