"""What a check may find wrong with a kernel: one error, with a verdict that programs can rely on.

unwritten      elements of an output still hold the poison that was there before the call
non_finite     NaN or infinity where the reference is finite
wrong_values   off by more than the tolerance
changed_input  an argument that is only read is not what it was
wrong_shape    what the kernel returned has another count or shape than the declared outputs
wrong_dtype    what it returned has another dtype, or lies on another device
other_stream   work went on after the stream was idle
no_kernel      the device had nothing to do
unaligned      an array begins where the kernel's vector accesses can't
"""

from solkit.errors import SolkitError
from solkit.model import Verdict


class CheckFailed(SolkitError):
    """A kernel ran and was not right; without a verdict, its operator's reference was not."""

    def __init__(self, message: str, *, remedy: str, verdict: Verdict = "") -> None:
        super().__init__(message, remedy=remedy)
        self.verdict: Verdict = verdict
