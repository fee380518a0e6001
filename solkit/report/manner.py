"""How times were taken, in words: what each method, cache mode and way to settle means."""

# The methods of calls that can't be queued ahead: time of the host may be in them.
UNBLOCKED = ("event_unblocked", "cupti_unblocked")
# By the names that runs record; `event_delayed` is that of runs before the blocking kernel.
_METHODS = {
    "cupti": "the GPU's own start and end of each kernel; the floor is what any kernel costs",
    "event_blocked": "event pairs, everything queued before the GPU may run it; most of the floor "
    "is the instrument's, and nothing is subtracted",
    "event_unblocked": "event pairs around calls that wait for the GPU themselves: host time may "
    "be in it",
    "cupti_unblocked": "the GPU's own start and end of each kernel of calls that wait for the GPU "
    "themselves: host time may lie between their kernels",
    "event_delayed": "event pairs behind a delay kernel; most of the floor is the instrument's",
    "graph": "many launches replayed as one graph, time per launch; the floor is a launch's share",
    "perf_counter": "the host's clock around each call; the floor is an empty call's",
}
_CACHES = {
    "cold": "buffer sets in rotation: reads come from DRAM, its own writes are paid",
    "clean": "other data was read through the L2 before each call",
    "zeroed": "other data was written through the L2 before each call, as a memset flush does",
    "hot": "the same buffers again: data may come from the L2",
}
_SETTLES = {
    "burst": "pauses between batches until clock and power are back: a rested chip",
    "sustained": "sampled once clock and power had settled under steady work",
}


def method_means(method: str) -> str:
    """Say how a method times and what its floor is; nothing of one that isn't known here."""
    return _METHODS.get(method, "")


def cache_means(modes: str) -> str:
    """Say what a cache mode means; nothing of several at once (`cold, hot`)."""
    return _CACHES.get(modes, "")


def settle_means(settle: str) -> str:
    """Say in which state of the chip the samples were taken."""
    return _SETTLES[settle]
