"""The host's own time in a call."""

import functools
import gc
import time

from solkit.measure.device.elapsed import elapsed_each_s, elapsed_s


def test_it_is_the_time_of_the_call_alone() -> None:
    """A nap of 5 ms reads 5 ms or more; an empty call far less."""
    assert elapsed_s(lambda: time.sleep(0.005)) >= 0.005
    assert min(elapsed_each_s([lambda: None] * 20)) < 0.001


def test_each_call_has_its_own_time_in_order() -> None:
    """What one takes is no part of the next."""
    naps = [functools.partial(time.sleep, length_s) for length_s in (0.0, 0.05, 0.0)]
    short, long, again = elapsed_each_s(naps)
    assert long >= 0.05 > min(short, again)


def test_no_garbage_is_collected_meanwhile() -> None:
    """It may free device memory, which waits for the device; afterwards it goes on as before."""
    seen: list[bool] = []
    elapsed_each_s([lambda: seen.append(gc.isenabled())])
    assert ([False], True) == (seen, gc.isenabled())
