"""The wheel and the source archive hold the complete package, both linked folders included, and import cleanly.

Nothing here needs the network: the build backend and the dependencies are those of the running environment.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "metalnb"
HEAVY = (
    "anywidget", "clang", "IPython", "ipywidgets", "matplotlib", "Metal", "metalcompute", "objc", "PIL", "psutil",
    "ziglang",
)  # fmt: skip


def run(*command: str | Path, cwd: Path) -> str:
    # The caller's own path would hide the installed package.
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source: Path, kind: str, into: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", into, cwd=source)
    (archive,) = into.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return archive


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {n for n in archive.namelist() if PurePosixPath(n).parts[0] == "metalnb"}


def extension_files() -> dict[str, bytes]:
    """Return every file of JupyterLab's extension, by its path below an environment's root."""
    place, sources = "share/jupyter/labextensions/metalnb", ROOT / "labextension"
    built = [f for f in sources.joinpath("prebuilt").rglob("*") if f.is_file()]
    found = {f"{place}/{f.relative_to(sources / 'prebuilt').as_posix()}": f.read_bytes() for f in built}
    return {**found, f"{place}/install.json": sources.joinpath("install.json").read_bytes()}


def shared_data(wheel: Path) -> dict[str, bytes]:
    """Return the files that a wheel puts below an environment's root."""
    with zipfile.ZipFile(wheel) as archive:
        return {n.partition(".data/data/")[2]: archive.read(n) for n in archive.namelist() if ".data/data/" in n}


def package_files() -> set[str]:
    """Return every file of the package in the tree, including the linked folders."""
    found = set()
    for folder, folders, files in os.walk(PACKAGE, followlinks=True):
        folders[:] = [f for f in folders if f not in {"__pycache__", ".ipynb_checkpoints"}]
        found |= {Path(folder, f).relative_to(ROOT).as_posix() for f in files}
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


def new_environment(folder: Path, *requirement: str | Path) -> Path:
    """Create a virtual environment with `requirement` that shares this one's dependencies; return its Python."""
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    (site,) = folder.rglob("site-packages")
    # A path added by a .pth file comes last, and its own .pth files are ignored, so an editable metalnb there is not
    # seen.
    site.joinpath("borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--no-deps", "--no-index", "--no-build-isolation", *requirement, cwd=folder)
    return python


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_environment(tmp_path_factory.mktemp("installed"), wheel)


def test_the_wheel_holds_the_package_whole(wheel: Path) -> None:
    assert members(wheel) == package_files()


def test_the_wheel_contains_the_files_that_are_not_python(wheel: Path) -> None:
    """Spot checks that do not depend on the rule for what is packaged."""
    held = members(wheel)
    assert {"metalnb/py.typed", "metalnb/__init__.pyi"} <= held
    assert "metalnb/msl/include/metal_stdlib" in held  # no extension, as Metal spells it
    assert any(n.startswith("metalnb/msl/target/") for n in held)
    sources = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("metalnb/library_kernels/**/*.metal")}
    assert sources
    assert sources <= held


def test_the_wheel_carries_the_extension_of_jupyterlab(wheel: Path) -> None:
    files = extension_files()
    assert shared_data(wheel) == files
    load = json.loads(files["share/jupyter/labextensions/metalnb/package.json"])["jupyterlab"]["_build"]["load"]
    assert f"share/jupyter/labextensions/metalnb/{load}" in files


def test_wheel_built_from_the_source_archive_is_identical(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "tarfile", "-e", sdist, tmp_path, cwd=tmp_path)
    (source,) = tmp_path.iterdir()
    again = build(source, "wheel", tmp_path / "again")
    assert members(again) == members(wheel)
    assert shared_data(again) == shared_data(wheel)


IMPORTED = ("metalnb", "metalnb/magics", "metalnb/library_kernels")
PLACES = """
import json, metalnb, metalnb.magics, metalnb.library_kernels
print(json.dumps([m.__file__ for m in (metalnb, metalnb.magics, metalnb.library_kernels)]))
"""


# How JupyterLab looks for extensions.
EXTENSIONS = """
from jupyter_core.paths import jupyter_path
from jupyterlab_server.config import get_federated_extensions
print(get_federated_extensions(jupyter_path("labextensions"))["metalnb"]["ext_path"])
"""


def test_jupyterlab_finds_the_extension(python: Path, tmp_path: Path) -> None:
    assert Path(run(python, "-c", EXTENSIONS, cwd=tmp_path).strip()).is_relative_to(python.parent.parent)


def test_installed_packages_are_imported_from_site_packages(python: Path, tmp_path: Path) -> None:
    places = json.loads(run(python, "-c", PLACES, cwd=tmp_path))
    assert all("site-packages" in place for place in places), places


def test_the_tree_is_imported_at_the_root(python: Path) -> None:
    places = [Path(place) for place in json.loads(run(python, "-c", PLACES, cwd=ROOT))]
    assert places == [ROOT / package / "__init__.py" for package in IMPORTED]


def test_editable_install_finds_packages_and_lab_extension(tmp_path: Path) -> None:
    python = new_environment(tmp_path / "editable", "--editable", ROOT)
    assert Path(run(python, "-c", EXTENSIONS, cwd=tmp_path).strip()).is_relative_to(tmp_path)
    places = [Path(place) for place in json.loads(run(python, "-c", PLACES, cwd=tmp_path))]
    assert places == [ROOT / package / "__init__.py" for package in IMPORTED]


@pytest.mark.parametrize("package", ["magics", "library_kernels"])
def test_bare_import_of_a_linked_package_is_refused(package: str, tmp_path: Path) -> None:
    """At the root Python would find the folder: it must name the right import, not become a second copy."""
    if not (ROOT / package).is_dir():
        pytest.skip("a checkout without symbolic links")
    done = subprocess.run(
        [sys.executable, "-c", f"import {package}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert f"ImportError: the folder {package}/ is the package metalnb.{package}" in done.stderr


def test_importing_loads_nothing_heavy(python: Path, tmp_path: Path) -> None:
    code = f"import metalnb, sys; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    assert run(python, "-c", code, cwd=tmp_path).strip() == "[]"


def test_the_command_is_installed(python: Path) -> None:
    command = python.with_name("metalnb" + python.suffix)
    assert "doctor" in run(command, "--help", cwd=python.parent)


def test_the_version_is_stated_once(python: Path, tmp_path: Path) -> None:
    code = "import importlib.metadata as m, metalnb; print(metalnb.__version__ == m.version('metalnb'))"
    assert run(python, "-c", code, cwd=tmp_path).strip() == "True"
