"""The site has every public name and every document, and builds without a warning or a broken link."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import metalnb as mnb
from metalnb.library_kernels import op_table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text("utf-8")
API = {page: page.read_text("utf-8") for page in sorted((DOCS / "api").glob("*.md"))}
DOCUMENTED = {name for text in API.values() for name in re.findall(r"^\.\. auto\w+:: ([\w.]+)$", text, re.MULTILINE)}
PAGES = (*DOCS.glob("*.md"), *API, *ROOT.glob("metalnb/**/*.md"))


def families() -> list[str]:
    return [name for text in API.values() for name in re.findall(r"^\.\. ops:: (\w+)$", text, re.MULTILINE)]


def test_every_public_name_is_on_a_page_of_the_reference() -> None:
    assert {f"metalnb.{name}" for name in mnb.__all__} - DOCUMENTED == set()


def test_every_module_for_users_is_on_a_page_of_the_reference() -> None:
    modules = ("linalg", "random", "puzzles", "drawing", "metalcompute")
    assert {f"metalnb.{name}" for name in modules} - DOCUMENTED == set()


def test_every_op_family_is_on_one_page() -> None:
    assert sorted(families()) == sorted({op.row.family for op in op_table.ops().values()})


def test_every_variable_of_the_environment_is_on_the_page_of_engines() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "metalnb").rglob("*.py")]
    read = {name for text in texts for name in re.findall(r"environ[^\n]*[\"'](METALNB_\w+)", text)}
    matches = re.findall(r"^\| `(METALNB_\w+)` \|", API[DOCS / "api" / "engines.md"], re.MULTILINE)
    assert sorted(matches) == sorted(read)


def test_the_contents_lead_to_every_document() -> None:
    contents = (DOCS / "contents.txt").read_text("utf-8")
    pages = {page.relative_to(ROOT).with_suffix("").as_posix() for page in PAGES}
    assert {page for page in pages if not re.search(rf"^(?:.*<)?{page}>?$", contents, re.MULTILINE)} == {"docs/README"}


def test_readers_notebook_is_not_a_page() -> None:
    """Only numbered notebooks, which the contents list, become pages."""
    matching = pytest.importorskip("sphinx.util.matching", reason="needs sphinx: pip install -e .[docs]")
    conf = (DOCS / "conf.py").read_text("utf-8")
    patterns = re.findall(r'"(notebooks/[^"]*)"', conf[conf.index("include_patterns") :])
    listed = re.findall(r"^notebooks/.*$", (DOCS / "contents.txt").read_text("utf-8"), re.MULTILINE)
    own = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("notebooks/[0-9][0-9]_*.ipynb")}
    assert len(own) >= 18
    every = {*own, "notebooks/Untitled.ipynb", "notebooks/mine/01_mine.ipynb", "notebooks/1.ipynb"}
    for expected, given in ((own, patterns), ({p.removesuffix(".ipynb") for p in own}, listed)):
        names = every if given is patterns else {p.removesuffix(".ipynb") for p in every}
        assert {name for pattern in given for name in matching.patfilter(names, pattern)} == expected


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make site` does."""
    pytest.importorskip("sphinx", reason="needs sphinx: pip install -e .[docs]")
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-c", DOCS, "-d", folder / "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, ROOT, folder / "html"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (built.stderr, built.returncode) == ("", 0)
    return folder / "html"


@pytest.mark.long  # A minute of Sphinx; the tests above read its sources
def test_site_has_every_public_name_and_no_broken_link(site: Path) -> None:
    pages = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    together = "".join(pages.values())
    names = {*mnb.__all__, *op_table.ops(), *(f"random.{name}" for name in mnb.random.__all__)}
    assert {name for name in names if f'id="metalnb.{name}"' not in together} == set()
    assert pages[site / "index.html"] == pages[site / "README.html"]
    first = pages[site / "notebooks" / "01_first_kernel.html"]
    assert re.search(r'<span class="k">kernel</span><span class="w"> </span><span class="kt">void</span>', first)
    assert re.search(r'href="\.\./_downloads/\w+/01_first_kernel\.ipynb"', first)
    themes = re.findall(r'<img [^>]*class="only-(\w+)"', pages[site / "index.html"])
    assert themes == ["light", "dark"] * README.count("<picture>")
    assert {f"{path.name}: {link}" for path, text in pages.items() for link in broken(path, text)} == set()


def broken(path: Path, text: str) -> list[str]:
    """Return a page's links to missing files."""
    links = {urlsplit(link) for link in re.findall(r'\b(?:href|src)="([^"]+)"', text)}
    local = [unquote(link.path) for link in links if not link.scheme and not link.netloc and link.path]
    return [link for link in local if not (path.parent / link).exists()]


@pytest.mark.long  # It builds the site
def test_every_notebook_picture_has_a_text_version(site: Path) -> None:
    pages = [*site.glob("notebooks/*.html"), site / "docs" / "gallery.html"]
    pictures = [tag for page in pages for tag in re.findall(r"<img [^>]*_images/[^>]*>", page.read_text("utf-8"))]
    words = [(re.findall(r'alt="([^"]*)"', tag) or [""])[0] for tag in pictures]
    assert len(words) > 60
    assert [word for word in words if not word or re.search(r"[0-9a-f]{16}|_images", word)] == []


@pytest.mark.long  # It builds the site
def test_the_gallery_has_a_picture_of_each_notebook_that_draws(site: Path) -> None:
    page = (site / "docs" / "gallery.html").read_text("utf-8")
    names = {path.stem for path in ROOT.glob("notebooks/[0-9][0-9]_*.ipynb") if '"image/' in path.read_text("utf-8")}
    assert {name for name in names if f"{name}_" in page} == names
