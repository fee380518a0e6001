"""A stand-in for pynvml: the same functions over a few dictionaries, for tests only.

A card's dictionary holds answers by query; a query that is left out is "Not Supported", as on
cards that lack it. `H200` holds what one H200 answered under driver 580.159.04.
"""

# ruff: noqa: D102, N802, N815  # the names are pynvml's, and say what they do
import os
from types import SimpleNamespace
from typing import Any

GIB = 2**30

H200: dict[str, Any] = {
    "name": "NVIDIA H200",
    "uuid": "GPU-8f5c2a10-0000-4000-8000-000000000001",
    "bus": "00000000:19:00.0",
    "device_id": 0x233510DE,
    "subsystem_id": 0x18BE10DE,
    "capability": (9, 0),
    "cores": 16896,
    "memory": {"total": 150754820096, "reserved": 660602880, "free": 150093430784},
    "bus_bits": 6016,
    "max_clocks": {1: 1980, 2: 3201},
    "clocks": {1: 345, 2: 3201},
    "application_clocks": {1: 1980},
    "power_limit": 700_000,
    "power_default": 700_000,
    "power": 80_250,
    "temperature": 35,
    "slowdown": 95,
    "events": 0x1,
    "ecc": [1, 1],
    "ecc_errors": 0,
    "mig": [0, 0],
    "persistence": 1,
    "compute_mode": 0,
    "remap": (0, 0, 0, 0),
    "recovery": 0,
    "processes": [],
}


def instance(**answers: Any) -> dict[str, Any]:
    """Return a MIG instance of an H200: 16 SMs and 16384 MiB of it."""
    return {
        "name": "NVIDIA H200 MIG 1g.18gb",
        "uuid": "MIG-00000000-0000-4000-8000-00000000000a",
        "sm_count": 16,
        "memory": {"total": 16384 * 2**20, "reserved": 0, "free": 16 * 10**9},
        "gpu_instance": 7,
        "compute_instance": 0,
        "processes": [],
    } | answers


class NVMLError(Exception):
    """What pynvml raises; its text is NVML's own."""


class FakeNvml:
    """The functions of pynvml that solkit calls, over the cards given."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_FI_DEV_POWER_INSTANT = 186
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
    nvmlMemory_v2 = 0x02000028

    def __init__(
        self,
        *cards: dict[str, Any],
        init_error: str = "",
        driver: str = "580.159.04",
        cuda: int = 13000,
    ) -> None:
        self.cards = list(cards)
        self.init_error = init_error
        self.driver = driver
        self.cuda = cuda
        self.open_count = 0

    def _of(self, handle: dict[str, Any], query: str) -> Any:
        assert self.open_count > 0, "asked outside a session"
        if query not in handle:
            raise NVMLError("Not Supported")
        return handle[query]

    def nvmlInit(self) -> None:
        if self.init_error:
            raise NVMLError(self.init_error)
        self.open_count += 1

    def nvmlShutdown(self) -> None:
        self.open_count -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return self.driver

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return self.cuda

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        if self.cards[index].get("lost"):
            raise NVMLError("GPU is lost")
        return self.cards[index]

    def nvmlDeviceGetName(self, handle: dict[str, Any]) -> str:
        return self._of(handle, "name")

    def nvmlDeviceGetUUID(self, handle: dict[str, Any]) -> str:
        return self._of(handle, "uuid")

    def nvmlDeviceGetPciInfo(self, handle: dict[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(
            busId=self._of(handle, "bus"),
            pciDeviceId=self._of(handle, "device_id"),
            pciSubSystemId=self._of(handle, "subsystem_id"),
        )

    def nvmlDeviceGetCudaComputeCapability(self, handle: dict[str, Any]) -> tuple[int, int]:
        return self._of(handle, "capability")

    def nvmlDeviceGetNumGpuCores(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "cores")

    def nvmlDeviceGetMemoryInfo(
        self, handle: dict[str, Any], version: int | None = None
    ) -> SimpleNamespace:
        told = self._of(handle, "memory")
        if not version:
            return SimpleNamespace(total=told["total"], free=told["free"])
        if "reserved" not in told:
            raise NVMLError("Function Not Found")
        return SimpleNamespace(**told)

    def nvmlDeviceGetMemoryBusWidth(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "bus_bits")

    def nvmlDeviceGetMaxClockInfo(self, handle: dict[str, Any], kind: int) -> int:
        return self._of(self._of(handle, "max_clocks"), kind)

    def nvmlDeviceGetClockInfo(self, handle: dict[str, Any], kind: int) -> int:
        return self._of(self._of(handle, "clocks"), kind)

    def nvmlDeviceGetApplicationsClock(self, handle: dict[str, Any], kind: int) -> int:
        return self._of(self._of(handle, "application_clocks"), kind)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "power_limit")

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "power_default")

    def nvmlDeviceGetPowerUsage(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "power")

    def nvmlDeviceGetTemperature(self, handle: dict[str, Any], sensor: int) -> int:
        assert sensor == self.NVML_TEMPERATURE_GPU
        return self._of(handle, "temperature")

    def nvmlDeviceGetTemperatureThreshold(self, handle: dict[str, Any], which: int) -> int:
        assert which == self.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        return self._of(handle, "slowdown")

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "events")

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "throttle_reasons")

    def nvmlDeviceGetEccMode(self, handle: dict[str, Any]) -> list[int]:
        return self._of(handle, "ecc")

    def nvmlDeviceGetTotalEccErrors(self, handle: dict[str, Any], kind: int, counter: int) -> int:
        assert (kind, counter) == (1, 0)
        return self._of(handle, "ecc_errors")

    def nvmlDeviceGetMigMode(self, handle: dict[str, Any]) -> list[int]:
        return self._of(handle, "mig")

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: dict[str, Any]) -> int:
        return 7 if self._of(handle, "mig")[0] else 0

    def nvmlDeviceGetMigDeviceHandleByIndex(
        self, handle: dict[str, Any], place: int
    ) -> dict[str, Any]:
        instances = handle.get("instances", [])
        if place >= len(instances):
            raise NVMLError("Not Found")
        return instances[place]

    def nvmlDeviceGetGpuInstanceId(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "gpu_instance")

    def nvmlDeviceGetComputeInstanceId(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "compute_instance")

    def nvmlDeviceGetAttributes_v2(self, handle: dict[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(multiprocessorCount=self._of(handle, "sm_count"))

    def nvmlDeviceGetPersistenceMode(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "persistence")

    def nvmlDeviceGetComputeMode(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "compute_mode")

    def nvmlDeviceGetRemappedRows(self, handle: dict[str, Any]) -> tuple[int, int, int, int]:
        return self._of(handle, "remap")

    def nvmlDeviceGetFieldValues(
        self, handle: dict[str, Any], fields: list[int]
    ) -> list[SimpleNamespace]:
        names = {
            self.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: "recovery",
            self.NVML_FI_DEV_POWER_INSTANT: "instant_power",
        }
        (query,) = (names[field] for field in fields)
        if handle.get("fields") == "refused":  # drivers without the function
            raise NVMLError("Function Not Found")
        if query not in handle:
            return [SimpleNamespace(nvmlReturn=3, value=SimpleNamespace(uiVal=7))]  # not a value
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=handle[query]))]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: dict[str, Any]) -> int:
        return self._of(handle, "energy")

    def nvmlDeviceGetComputeRunningProcesses(self, handle: dict[str, Any]) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(pid=os.getpid() if pid == "self" else pid)
            for pid in self._of(handle, "processes")
        ]

    def nvmlDeviceGetMPSComputeRunningProcesses(
        self, handle: dict[str, Any]
    ) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid in self._of(handle, "mps")]

    def nvmlDeviceGetGraphicsRunningProcesses(
        self, handle: dict[str, Any]
    ) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid in self._of(handle, "graphics")]

    def nvmlDeviceGetUtilizationRates(self, handle: dict[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(gpu=self._of(handle, "busy"), memory=0)
