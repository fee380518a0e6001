"""Kernels that are right, and do what a kernel should not do beside."""

import os
import subprocess
import sys
import time
from pathlib import Path

from solkit import Array, Kernel

print("a declaration that talks while it is imported")  # noqa: T201  # the fault


def prints(x: Array, y: Array) -> None:
    """Talk on every road that leads to standard output."""
    print('{"done": "not yours"}', flush=True)  # noqa: T201  # the fault
    os.write(1, b'{"at": 99, "stage": "time"}\n')
    subprocess.run([sys.executable, "-S", "-c", "print(1)"], check=True)
    y[...] = 2 * x


def forks(x: Array, y: Array) -> None:
    """Come back twice: in this process and in a copy of it."""
    os.fork()
    y[...] = 2 * x


def leaves_a_child(x: Array, y: Array) -> None:
    """Leave a process behind that holds all pipes open, and die."""
    child = os.fork()
    if not child:
        time.sleep(3600)
    Path(os.environ["SOLKIT_TEST_CHILD"]).write_text(str(child), encoding="utf-8")
    y[...] = 2 * x
    os._exit(5)


KERNELS = [
    Kernel(name=function.__name__, operator="twice", function=function, device="cpu")
    for function in (prints, forks, leaves_a_child)
]
