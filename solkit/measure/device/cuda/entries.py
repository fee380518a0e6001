"""What of instruments.cu is compiled: the functions by name, and for which types the templates."""

from solkit.dtypes import CASE_DTYPES, DTYPES
from solkit.measure.device.base import tells_unwritten

# Names of the types in instruments.cu. 8-bit integers have no marks to count; a checksum is one of
# bits, whatever they mean.
MARKED = {
    name: name if dtype.number == "code" else dtype.ctype
    for name, dtype in DTYPES.items()
    if tells_unwritten(name)
}
BITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
FILLED = tuple(DTYPES[name].ctype for name in CASE_DTYPES)
PLAIN = ("solkit_hold", "solkit_stamp", "timer_step", "spin", "flush_read", "empty", "fill_bits")
TEMPLATES = {
    "fill_normal": FILLED,
    "fill_uniform": FILLED,
    "count_marks": tuple(MARKED.values()),
    "checksum": tuple(BITS.values()),
}
ENTRIES = (*PLAIN, *(f"{name}<{kind}>" for name, kinds in TEMPLATES.items() for kind in kinds))
