"""What a change is judged by. `.ci/run` calls these sessions by name; run them the same way here.

`nox -s lint test` builds an environment of its own from constraints.txt; `nox --no-venv -s lint`
uses the one that is active.
"""

import shutil
from pathlib import Path

import nox

ROOT = Path(__file__).parent
DATA = ("kernels", "hardware_specs", "reports")

nox.options.sessions = ["lint", "test"]
nox.options.reuse_existing_virtualenvs = True


def prepare(session: nox.Session) -> None:
    """Install solkit with its tools, unless the active environment is to be used as it is."""
    if session.venv_backend != "none":
        session.install("-c", "constraints.txt", "-e", ".[dev]")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and types."""
    prepare(session)
    session.run("python", "-m", "ruff", "check", ".")
    session.run("python", "-m", "ruff", "format", "--check", ".")
    session.run("python", "-m", "mypy")


@nox.session
def test(session: nox.Session) -> None:
    """Run every test that needs no GPU; arguments go to pytest: `nox -s test -- -k sweep`."""
    prepare(session)
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def gpu(session: nox.Session) -> None:
    """Run the tests that need a CUDA device; `-- cuda12` chooses the older CUDA family."""
    family = "cuda12" if "cuda12" in session.posargs else "cuda13"
    if session.venv_backend != "none":
        session.install("-c", "constraints.txt", "-e", f".[dev,{family}]")
    rest = [argument for argument in session.posargs if argument not in {"cuda12", "cuda13"}]
    session.run("python", "-m", "pytest", "-m", "gpu", *rest)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the sdist and the wheel from it; use the wheel in an empty environment, elsewhere."""
    place = Path(session.create_tmp()).resolve()
    built, away, env = place / "dist", place / "away", place / "env"
    for folder in (built, away, env):
        shutil.rmtree(folder, ignore_errors=True)
    away.mkdir(parents=True)
    # The wheel is built from the unpacked sdist, so that what the sdist lacks cannot ship.
    session.install("-c", "constraints.txt", "build", "hatchling")
    session.run("python", "-m", "build", "--no-isolation", "--outdir", str(built), str(ROOT))
    (package,) = built.glob("*.whl")
    session.run("python", "-m", "venv", str(env))
    programs = env / ("Scripts" if (env / "Scripts").is_dir() else "bin")
    python, solkit = str(programs / "python"), str(programs / "solkit")
    constraints = str(ROOT / "constraints.txt")
    session.run(
        python, "-m", "pip", "install", "-q", "-c", constraints, str(package), external=True
    )
    with session.chdir(away):
        session.run(solkit, "list", external=True)
        session.run(solkit, "gpus", "lint", external=True)
        with (away / "s.yaml").open("w", encoding="utf-8") as file:
            session.run(solkit, "new", "shapes", stdout=file, stderr=None, external=True)
        session.run(solkit, "plan", "--shapes", "s.yaml", "--gpu", "h200", external=True)
