"""Where the data folders (kernels, hardware_specs, reports) are: in the wheel or the checkout."""

from functools import cache
from pathlib import Path

from solkit.errors import NoDevice


@cache
def folder(kind: str) -> Path:
    """Return the data folder `kind`: the installed one, else the one beside this package."""
    package = Path(__file__).parent
    installed = package / "_data" / kind
    if installed.is_dir():
        return installed
    checkout = package.parent / kind
    if (package.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    raise NoDevice(
        f"the data folder {kind!r} is missing (looked at {installed} and {checkout})",
        remedy="reinstall solkit: pip install --force-reinstall solkit",
    )
