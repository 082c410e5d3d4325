"""Files that code hosts read: workflows, issue forms, dependency updates, hooks, classifiers, the container."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from trove_classifiers import classifiers

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(path for path in GITHUB.glob("ISSUE_TEMPLATE/*.yml") if path.name != "config.yml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TARGETS = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)[1].split()  # type: ignore[index]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in load(path)["jobs"].items():
        yield f"{path.name}: {name}", job


ALL_JOBS = [pair for path in WORKFLOWS for pair in jobs(path)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_a_workflow_has_a_trigger_and_may_only_read(path: Path) -> None:
    workflow = load(path)
    assert workflow[True]  # `on`, which YAML 1.1 reads as a boolean
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("job", [j for _, j in ALL_JOBS], ids=[n for n, _ in ALL_JOBS])
def test_a_job_has_a_machine_a_limit_and_steps_that_do_one_thing(job: dict[str, Any]) -> None:
    assert re.fullmatch(r"(ubuntu|macos|windows)-[\d.]+", job["runs-on"])
    assert job["timeout-minutes"] <= 90
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step), step
        assert step.keys() <= {"name", "uses", "run", "with", "env", "if"}, step
        for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
            assert target in TARGETS, step


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_an_action_is_pinned_by_its_hash_and_says_its_version(path: Path) -> None:
    """A tag can be moved to other code; Dependabot moves the hash and the comment together."""
    used = re.findall(r"uses: *(.*)", path.read_text("utf-8"))
    assert used
    assert [u for u in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", u)] == []


def test_each_action_is_pinned_to_one_hash() -> None:
    used = {u for path in WORKFLOWS for u in re.findall(r"uses: *(.*)", path.read_text("utf-8"))}
    names = [u.partition("@")[0] for u in used]
    assert sorted(names) == sorted(set(names))


def test_only_a_tag_is_published_after_the_build_was_checked() -> None:
    writing = {name: job for name, job in ALL_JOBS if "write" in str(job.get("permissions"))}
    assert list(writing) == ["publish.yml: upload"]
    upload = writing["publish.yml: upload"]
    assert upload["if"] == "github.ref_type == 'tag'"
    assert upload["needs"] == "build"
    assert upload["environment"] == "pypi"
    commands = [step.get("run", "") for step in load(GITHUB / "workflows" / "publish.yml")["jobs"]["build"]["steps"]]
    assert "python -m twine check --strict dist/*" in commands
    assert "secrets." not in (GITHUB / "workflows" / "publish.yml").read_text("utf-8")


@pytest.mark.parametrize("path", FORMS, ids=lambda p: p.name)
def test_an_issue_form_is_one_that_github_shows(path: Path) -> None:
    form = load(path)
    assert form.keys() <= {"name", "description", "labels", "body", "title", "assignees"}
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 0
    assert len({field["attributes"]["label"] for field in fields}) == len(fields)
    for field in fields:
        assert field["type"] in {"input", "textarea", "dropdown", "checkboxes"}
        assert re.fullmatch(r"[\w-]+", field["id"])
        assert field.keys() <= {"type", "id", "attributes", "validations"}


def test_bug_reports_ask_for_doctors_output() -> None:
    fields = {field["id"]: field for field in load(GITHUB / "ISSUE_TEMPLATE" / "bug.yml")["body"]}
    assert "python -m metalnb doctor" in fields["doctor"]["attributes"]["description"]
    assert fields["doctor"]["validations"] == {"required": True}


def test_dependabot_looks_where_dependencies_are_named() -> None:
    updates = load(GITHUB / "dependabot.yml")
    assert updates["version"] == 2
    manifests = {"github-actions": ".github/workflows", "pip": "pyproject.toml", "npm": "package.json"}
    found = [(u["package-ecosystem"], u["directory"]) for u in updates["updates"]]
    assert sorted(e for e, _ in found) == sorted(manifests)
    for ecosystem, directory in found:
        assert ROOT.joinpath(directory.strip("/"), manifests[ecosystem]).exists()


def test_classifiers_are_known_and_name_the_tested_versions() -> None:
    assert [c for c in PROJECT["classifiers"] if c not in classifiers] == []
    named = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", c)}
    tested = load(GITHUB / "workflows" / "linux.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert named == set(tested)
    assert PROJECT["requires-python"] == f">={tested[0]}"


def test_hooks_run_what_make_lint_runs() -> None:
    hooks = {h["id"]: h for repo in load(ROOT / ".pre-commit-config.yaml")["repos"] for h in repo["hooks"]}
    assert len(hooks) == sum(len(repo["hooks"]) for repo in load(ROOT / ".pre-commit-config.yaml")["repos"])
    lint = (ROOT / "Makefile").read_text("utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    for tool in ("ruff check", "mypy"):
        assert f"$(BIN)/{tool}" in lint
        assert hooks[tool.split()[0]]["entry"].startswith(f".venv/bin/{tool}")


def test_the_container_is_made_ready_by_make() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert container["postCreateCommand"].removeprefix("make ") in TARGETS
    assert [f for f in container["customizations"]["codespaces"]["openFiles"] if not (ROOT / f).is_file()] == []
