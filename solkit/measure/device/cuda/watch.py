"""How the card fares while it is measured: NVML's readings of this very card, found by its UUID."""

import os

from solkit.errors import NoDevice
from solkit.measure.device import readings
from solkit.measure.device.nvml import Nvml
from solkit.model import Clocks


class Watch:
    """Reads clocks, power, energy and processes; where NVML can't tell, a note says so once.

    Made before this process has a context on the card: the processes that are there already are
    strangers, whatever numbers a container gives to processes.
    """

    def __init__(self, uuid: str) -> None:
        self.notes: tuple[str, ...] = ()
        self._uuid = uuid
        self._nvml: Nvml | None = None
        self._blind = False
        self._own: frozenset[int] = frozenset()
        self._strangers = frozenset(self._process_ids())

    def recognise_own(self) -> None:
        """Take the processes that came since the beginning for this one: it has a context now."""
        self._own = frozenset(self._process_ids()) - self._strangers | {os.getpid()}

    def conditions(self) -> Clocks:
        """Return clocks, power, temperature and event reasons as they are now."""
        nvml = self._asked()
        return readings.conditions(nvml, self._uuid) if nvml else Clocks()

    def power_limit_w(self) -> float | None:
        """Return the power limit in force."""
        nvml = self._asked()
        return readings.power_limit_w(nvml, self._uuid) if nvml else None

    def energy_j(self) -> float | None:
        """Return the energy used since the driver was loaded; the counter steps every 100 ms."""
        nvml = self._asked()
        return readings.energy_j(nvml, self._uuid) if nvml else None

    def other_process_count(self) -> int:
        """Return how many other processes have a context on the card."""
        return len(frozenset(self._process_ids()) - self._own)

    def _process_ids(self) -> tuple[int, ...]:
        nvml = self._asked()
        return nvml.process_ids(self._uuid) if nvml else ()

    def _asked(self) -> Nvml | None:
        if self._blind:
            return None
        try:
            self._nvml = self._nvml or Nvml()
            self._nvml.handles(self._uuid)
        except NoDevice as error:
            self._blind = True
            self.notes = (f"clocks, power and temperature are not read: {error.message}",)
            return None
        return self._nvml
