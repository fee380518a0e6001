"""One compilation by NVRTC, in a process of its own: a request on stdin, the answer on stdout.

Both are one JSON object. It runs as a script, with nothing but the standard library, so that it
starts quickly and a crash inside the compiler costs nobody else anything.

request  {"library", "source", "name", "entries": [...], "options": [...]}
answer   {"ok", "log", "cubin": base64, "lowered": {entry: symbol}}, or {"ok": false, "log"}
"""

import base64
import ctypes
import json
import sys
from typing import Any


def load(library: str) -> ctypes.CDLL:
    """Open NVRTC and give the two functions that return text their types."""
    nvrtc = ctypes.CDLL(library)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return nvrtc


class _Refused(Exception):
    """NVRTC returned an error; the text says which call and what it said."""


def _do(nvrtc: ctypes.CDLL, call: str, *arguments: Any) -> None:  # noqa: ANN401  # ctypes values
    code = getattr(nvrtc, call)(*arguments)
    if code:
        raise _Refused(f"{call}: {nvrtc.nvrtcGetErrorString(code).decode()}")


def _bytes_of(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _do(nvrtc, f"nvrtcGet{what}Size", program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _do(nvrtc, f"nvrtcGet{what}", program, buffer)
    return buffer.raw[: size.value]


def compile_request(request: dict[str, Any]) -> dict[str, Any]:
    """Compile one source to a cubin and look up its entries' symbols."""
    nvrtc = load(request["library"])
    program = ctypes.c_void_p()
    log = ""
    try:
        _do(
            nvrtc,
            "nvrtcCreateProgram",
            ctypes.byref(program),
            request["source"].encode(),
            request["name"].encode(),
            0,
            None,
            None,
        )
        for entry in request["entries"]:
            _do(nvrtc, "nvrtcAddNameExpression", program, entry.encode())
        options = [option.encode() for option in request["options"]]
        code = nvrtc.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        log = _bytes_of(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if code:
            return {"ok": False, "log": log or nvrtc.nvrtcGetErrorString(code).decode()}
        lowered = {}
        for entry in request["entries"]:
            symbol = ctypes.c_char_p()
            _do(nvrtc, "nvrtcGetLoweredName", program, entry.encode(), ctypes.byref(symbol))
            lowered[entry] = (symbol.value or b"").decode()
        cubin = base64.b64encode(_bytes_of(nvrtc, program, "CUBIN")).decode()
    except _Refused as refused:
        return {"ok": False, "log": f"{log}\n{refused}".strip()}
    return {"ok": True, "log": log, "cubin": cubin, "lowered": lowered}


if __name__ == "__main__":
    json.dump(compile_request(json.load(sys.stdin)), sys.stdout)
