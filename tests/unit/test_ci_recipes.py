"""The CI recipes of docs/ci: files that their hosts take, commands that solkit takes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from solkit.cli.main import app, arranged
from solkit.cli.outputs import COMPARE_FILE, REPORT_FILE, RUN_FILE
from solkit.declare.registry import bundled
from solkit.judge.gate_file import read_gate

tree_sitter = pytest.importorskip("tree_sitter")
tree_sitter_groovy = pytest.importorskip("tree_sitter_groovy")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the recipes are for Linux runners")

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "ci"
GITHUB, GITLAB, JENKINS = (RECIPES / name for name in ("github.yml", "gitlab.yml", "Jenkinsfile"))
GUIDE = ROOT / "docs" / "ci.md"
EXPRESSION = "${{"
SCHEMA_OF = ("-m", "check_jsonschema", "--builtin-schema")
# What a declarative pipeline is made of, and the steps that this one uses.
SECTIONS = ("pipeline", "agent", "options", "environment", "stages", "stage", "steps", "post")
STEPS = ("sh", "copyArtifacts", "junit", "archiveArtifacts")
OPTIONS = ("disableConcurrentBuilds", "timeout", "copyArtifactPermission", "buildDiscarder")
WORDS = ("always", "label", "logRotator", "lastSuccessful")

# Stands in for solkit and for whatever installs it: notes its arguments, and leaves the files that
# the options name, so that the rest of the script has something to go on with.
STUB = """#!{python}
import json, os, sys
from pathlib import Path
words = sys.argv[1:]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps([Path(sys.argv[0]).name, *words]) + "\\n")
for option, value in zip(words, words[1:]):
    if option == "--out":
        Path(value).mkdir(parents=True, exist_ok=True)
        for name in ("run.jsonl", "report.html"):
            (Path(value) / name).write_text(name)
    elif option in ("-o", "--junit", "--summary"):
        Path(value).write_text(option)
"""


@dataclass(frozen=True, slots=True)
class Script:
    """A piece of shell in a recipe, with the variables that it sees there."""

    where: str
    text: str
    variables: Mapping[str, str] = field(default_factory=dict)
    shell: tuple[str, ...] = ("bash", "-e")


def github_scripts() -> Iterator[Script]:
    workflow = yaml.safe_load(GITHUB.read_text())
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            if "run" in step:
                yield Script(
                    f"github {name}: {step['name']}",
                    step["run"],
                    workflow["env"] | job.get("env", {}),
                    ("bash", "--noprofile", "--norc", "-eo", "pipefail"),
                )


def gitlab_scripts() -> Iterator[Script]:
    pipeline = yaml.safe_load(GITLAB.read_text())
    for name, job in pipeline.items():
        if name != "variables":
            for part in ("before_script", "script"):
                text = "\n".join(job[part])
                variables = pipeline["variables"] | job.get("variables", {})
                yield Script(f"gitlab {name}: {part}", text, variables, ("sh", "-e"))


def jenkins_scripts() -> Iterator[Script]:
    text = JENKINS.read_text()
    variables = dict(re.findall(r"^    ([A-Z]+) = '([^']*)'$", text, re.MULTILINE))
    found = re.findall(r"\bsh (?:'''(.*?)'''|'([^'\n]*)')", text, re.DOTALL)
    for number, parts in enumerate(found):
        yield Script(f"jenkins sh {number + 1}", "".join(parts), variables, ("sh",))


def guide_scripts() -> Iterator[Script]:
    blocks = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    for number, text in enumerate(blocks):
        yield Script(f"ci.md block {number + 1}", text)


SCRIPTS = [*github_scripts(), *gitlab_scripts(), *jenkins_scripts(), *guide_scripts()]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which scripts run with stand-ins for every program that they start."""

    at: Path

    def run(self, script: Script, **more: str) -> list[list[str]]:
        """Run a script as its host does; return the solkit commands it gave, in order."""
        calls = self.at / "calls"
        calls.write_text("")
        done = subprocess.run(
            [*script.shell, "-c", script.text],
            check=False,
            cwd=self.at,
            capture_output=True,
            text=True,
            env={
                "PATH": f"{self.at / 'programs'}{os.pathsep}{os.environ['PATH']}",
                "CALLS": str(calls),
                "GITHUB_PATH": str(self.at / "path"),
                "GITHUB_STEP_SUMMARY": "summary.md",
                **script.variables,
                **more,
            },
        )
        assert 0 == done.returncode, done.stderr
        said = map(json.loads, calls.read_text().splitlines())
        return [words[1:] for words in said if words[0] == "solkit"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a folder that holds what the recipes expect of a checkout, and the stand-ins."""
    for folder in ("programs", ".venv/bin", "solkit-out/head"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("solkit", "pip", "python3", "git"):
        for folder in ("programs", ".venv/bin"):
            program = tmp_path / folder / name
            program.write_text(STUB.format(python=sys.executable))
            program.chmod(0o755)
    (tmp_path / "solkit-out" / "head" / "run.jsonl").write_text("")
    return Place(tmp_path)


def parsed(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the command and the parameters that solkit reads from a command line.

    An option or a value that it does not take raises what a person would see.
    """
    program = typer.main.get_command(app)
    with program.make_context("solkit", arranged(words), resilient_parsing=False) as context:
        name, command, rest = program.resolve_command(  # type: ignore[attr-defined]
            context, [*context._protected_args, *context.args]
        )
        with command.make_context(name, rest, parent=context) as inner:
            return name, dict(inner.params)


@pytest.mark.parametrize(
    ("recipe", "schema"), [(GITHUB, "vendor.github-workflows"), (GITLAB, "vendor.gitlab-ci")]
)
def test_a_recipe_is_what_its_host_takes(recipe: Path, schema: str) -> None:
    """The schemas that GitHub's and GitLab's own editors use find nothing."""
    done = subprocess.run(
        [sys.executable, *SCHEMA_OF, schema, recipe],
        check=False,
        capture_output=True,
        text=True,
    )
    assert 0 == done.returncode, done.stdout


def test_the_schema_finds_a_key_that_is_none(tmp_path: Path) -> None:
    """The check above can fail: `run_on` is no key of a job."""
    broken = tmp_path / "broken.yml"
    broken.write_text(GITHUB.read_text().replace("runs-on:", "run_on:"))
    done = subprocess.run(
        [sys.executable, *SCHEMA_OF, "vendor.github-workflows", broken],
        check=False,
        capture_output=True,
        text=True,
    )
    assert 1 == done.returncode
    assert "runs-on" in done.stdout


def groovy_nodes(text: str) -> list[tuple[str, str]]:
    """Return the kind and the text of every node of a Groovy file's tree; `ERROR` is one."""
    source = text.encode()
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_groovy.language()))
    found, waiting = [], [parser.parse(source).root_node]
    while waiting:
        node = waiting.pop()
        kind = "ERROR" if node.is_missing else node.type
        found.append((kind, source[node.start_byte : node.end_byte].decode()))
        waiting += reversed(node.children)
    return found


def test_the_jenkinsfile_is_groovy() -> None:
    """A parser of the language reads it whole; without one brace it does not."""
    text = JENKINS.read_text()
    assert [] == [part for kind, part in groovy_nodes(text) if kind == "ERROR"]
    assert [] != [part for kind, part in groovy_nodes(text[:-2]) if kind == "ERROR"]


def test_the_jenkinsfile_calls_declarative_sections_and_known_steps_alone() -> None:
    """Every name that is called is one of the pipeline syntax or of the plugins it names."""
    called = [
        re.split(r"\W", part, maxsplit=1)[0]
        for kind, part in groovy_nodes(JENKINS.read_text())
        if kind in ("method_invocation", "juxt_function_call")
    ]
    assert [] == [name for name in called if name not in SECTIONS + STEPS + OPTIONS + WORDS]
    assert set(STEPS) <= set(called)
    stages = re.findall(r"stage\('(\w+)'\)", JENKINS.read_text())
    assert ["Install", "Baseline", "Measure"] == stages


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.where)
def test_shell_in_a_recipe_is_shell(script: Script) -> None:
    """`bash -n` (`sh -n` where the host has no more) reads it; it holds no expression of a host.

    GitHub pastes ${{ }} into a script as text, whatever a branch's name holds.
    """
    done = subprocess.run(
        [script.shell[0], "-n"], input=script.text, check=False, capture_output=True, text=True
    )
    assert (0, "") == (done.returncode, done.stderr)
    assert EXPRESSION not in script.text


@pytest.mark.parametrize("baseline", [True, False], ids=["baseline", "no-baseline"])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.where)
def test_solkit_takes_every_command_of_a_recipe(
    script: Script,
    place: Place,
    baseline: bool,  # noqa: FBT001  # a case of the test
) -> None:
    """The script runs with solkit's stand-in; the arguments it got are read by the real one."""
    if baseline:
        (place.at / "solkit-baseline").mkdir()
        (place.at / "solkit-baseline" / "run.jsonl").write_text("")
    for words in place.run(script):
        name, _ = parsed(words)
        assert words[0] == name


def test_an_option_that_solkit_does_not_have_is_found() -> None:
    """The check above can fail."""
    with pytest.raises(Exception, match="No such option: --gates"):
        parsed(["run", "--shapes", "s.yaml", "--gates", "gate.toml"])


def measured_by(scripts: Iterator[Script], place: Place) -> dict[str, Any]:
    """Return the parameters of the one `solkit run` of a recipe."""
    commands = [words for script in scripts for words in place.run(script)]
    (words,) = [words for words in commands if words[0] == "run"]
    return parsed(words)[1]


@pytest.mark.parametrize(
    "scripts",
    [github_scripts, gitlab_scripts, jenkins_scripts],
    ids=["github", "gitlab", "jenkins"],
)
def test_a_baseline_is_compared_with_where_there_is_one(scripts: Any, place: Place) -> None:
    """The gate is held in any case; without a baseline it holds the floors alone."""
    first = measured_by(scripts(), place)
    assert ([], Path("docs/ci/gate.toml")) == (first["against"], first["gate"])
    (place.at / "solkit-baseline").mkdir(exist_ok=True)
    (place.at / "solkit-baseline" / "run.jsonl").write_text("")
    # Jenkins clears it before it copies the last one, which is no shell: leave that piece out.
    rest = (script for script in scripts() if not script.text.startswith("rm "))
    assert [Path("solkit-baseline")] == measured_by(rest, place)["against"]


def test_each_host_gets_the_files_it_can_show(place: Place) -> None:
    """GitHub: summary and annotations; GitLab: JUnit; Jenkins: JUnit and the folder form."""
    github, gitlab, jenkins = (
        measured_by(each(), place) for each in (github_scripts, gitlab_scripts, jenkins_scripts)
    )
    assert {Path("junit.xml")} == {each["junit"] for each in (github, gitlab, jenkins)}
    assert [True, False, False] == [each["annotations"] for each in (github, gitlab, jenkins)]
    assert [None, None, Path("solkit-out/page")] == [
        each["assets"] for each in (github, gitlab, jenkins)
    ]


def test_an_unzipped_artifact_is_one_file_and_no_two_share_a_name() -> None:
    """GitHub refuses several files with `archive: false`, and a second artifact of one name."""
    jobs = yaml.safe_load(GITHUB.read_text())["jobs"]
    uploads = [
        step["with"]
        for job in jobs.values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/upload-artifact@")
    ]
    single = [each["path"] for each in uploads if each.get("archive") is False]
    assert ["solkit-out/head/report.html", "recorded.html"] == single
    names = [each.get("name", Path(each["path"]).name) for each in uploads]
    assert len(names) == len(set(names))


def test_what_a_merge_request_links_is_a_plain_path() -> None:
    """GitLab drops `expose_as` without a word where a path has a wildcard, a variable or `./`."""
    jobs = yaml.safe_load(GITLAB.read_text())
    for name in ("solkit", "solkit-recorded"):
        exposed = jobs[name]["artifacts"]
        assert exposed["expose_as"]
        assert [] == [path for path in exposed["paths"] if re.search(r"[*$]|^\./", path)]


def test_archived_files_are_files_that_solkit_wrote(place: Place) -> None:
    """Every path that GitLab and Jenkins keep is one that the options name."""
    gitlab = yaml.safe_load(GITLAB.read_text())["solkit"]["artifacts"]
    run = measured_by(gitlab_scripts(), place)
    files = (REPORT_FILE, RUN_FILE, COMPARE_FILE)  # the last one with a baseline
    written = {run["junit"], run["summary"], *(run["out"] / name for name in files)}
    assert written == {Path(path) for path in (*gitlab["paths"], gitlab["reports"]["junit"])}
    (kept,) = re.findall(r"artifacts: '([^']+)'", JENKINS.read_text())
    run = measured_by(jenkins_scripts(), place)
    written = {f"{run['assets']}/**", f"{run['out']}/*", f"{run['summary']}"}
    assert written == set(kept.split(", "))


def test_strangers_never_run_on_a_runner_of_ones_own() -> None:
    """A pull request from a fork is not measured, and the token can't write."""
    workflow = yaml.safe_load(GITHUB.read_text())
    assert "head.repo.full_name == github.repository" in workflow["jobs"]["measure"]["if"]
    assert {"contents": "read"} == workflow["permissions"]


def test_the_gate_of_the_recipes_is_one() -> None:
    """Its floors are read, for operators that there are."""
    gate = read_gate(RECIPES / "gate.toml", bundled().operators)
    assert ("measured", 0.4, 0.95) == (
        gate.floors.roof,
        gate.floors.of("softmax"),
        gate.floors.of("copy"),
    )


@pytest.mark.slow
def test_the_job_without_a_gpu_passes_here(tmp_path: Path) -> None:
    """Its steps after the installation, on the recorded runs, by the real solkit."""
    scripts = [each for each in github_scripts() if each.where.startswith("github recorded")]
    variables = dict(scripts[0].variables)
    for name in ("BASE", "HEAD"):
        if not (ROOT / variables[name]).exists():
            variables[name] = variables["RUN"]
    for name in ("RUN", "BASE", "HEAD", "GATE"):
        variables[name] = str(ROOT / variables[name])
    programs = Path(sys.executable).parent
    for script in scripts[1:]:
        done = subprocess.run(
            [*script.shell, "-c", script.text],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                **variables,
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            },
        )
        assert 0 == done.returncode, f"{script.where}: {done.stderr}"
    assert {"recorded.html", "junit.xml", "compare.md", "summary.md"} == {
        path.name for path in tmp_path.iterdir()
    }
    summary = (tmp_path / "summary.md").read_text()
    assert summary.endswith((tmp_path / "compare.md").read_text())
    assert len(summary.encode()) < 2**20  # a larger one is not shown at all


def test_the_guide_names_every_recipe_and_every_exit_code() -> None:
    """Whoever reads it finds the files, and the codes of DESIGN in its table."""
    text = GUIDE.read_text()
    for recipe in (GITHUB, GITLAB, JENKINS, RECIPES / "gate.toml"):
        assert f"(ci/{recipe.name})" in text
    codes = re.findall(r"^\| (\d+) \|", text, re.MULTILINE)
    assert ["0", "1", "2", "3", "4", "130"] == codes


def test_links_of_the_guide_lead_somewhere() -> None:
    """Every relative link is a file of the project."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", GUIDE.read_text()):
        assert (GUIDE.parent / target).exists(), target


def test_every_option_of_a_recipe_is_explained() -> None:
    """The guide's table has each option that a recipe gives to `solkit run`."""
    given = set()
    for script in (*github_scripts(), *gitlab_scripts(), *jenkins_scripts()):
        lines = script.text.replace("\\\n", " ").splitlines()
        given |= {
            word
            for line in lines
            if "solkit run" in line or "--against" in line
            for word in re.findall(r"--[a-z-]+", line)
        }
    explained = set(re.findall(r"^\| `(--[a-z-]+)", GUIDE.read_text(), re.MULTILINE))
    assert given <= explained
