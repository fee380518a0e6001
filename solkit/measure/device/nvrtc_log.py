"""What ptxas -v says of each function: registers, spills, shared memory, and warnings."""

import re

from solkit.model import Compiled

# ptxas leaves something out and says so only here: C7508 to C7511, C7517 (setmaxnreg ignored, wgmma
# serialised). Such a kernel runs, slowly.
_DROPPED = re.compile(r"\bC75(?:08|09|10|11|17)\b")
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


def functions(log: str, lowered: dict[str, str]) -> dict[str, Compiled]:
    """Read a compiler's log: what it says of each entry, found by its symbol in `lowered`."""
    blocks: dict[str, list[str]] = {"": []}
    current = ""
    for line in log.splitlines():
        entered = _ENTRY.search(line)
        if entered:
            current = entered.group(1)
        blocks.setdefault(current, []).append(line)
    return {
        entry: _compiled(entry, "\n".join(blocks.get(symbol, ())), _warnings(log, symbol, blocks))
        for entry, symbol in lowered.items()
    }


def _compiled(entry: str, text: str, warnings: tuple[str, ...]) -> Compiled:
    registers, shared, spills = (rule.search(text) for rule in (_REGISTERS, _SHARED, _SPILLS))
    return Compiled(
        name=entry,
        register_count=int(registers.group(1)) if registers else None,
        spill_bytes=max(int(spills.group(1)), int(spills.group(2))) if spills else None,
        shared_bytes=(int(shared.group(1)) if shared else 0) if registers else None,
        warnings=warnings,
    )


def _warnings(log: str, symbol: str, blocks: dict[str, list[str]]) -> tuple[str, ...]:
    """Return this function's warnings from ptxas, and those that name no function.

    The front end's concern the source, and ptxas reports dropped instructions before it names the
    first function: both are held against every one.
    """
    anyones, own = blocks[""], blocks.get(symbol, [])
    found = []
    for line in log.splitlines():
        named = next((other for other in blocks if other and other in line), None)
        concerns = named == symbol or (named is None and (line in anyones or line in own))
        if "warning #" in line or (concerns and (_DROPPED.search(line) or "ptxas warning" in line)):
            found.append(line.strip())
    return tuple(dict.fromkeys(found))
