from pathlib import Path

import pytest
from fake_nvml import H200, FakeNvml, instance

from solkit.errors import BadInput, NoDevice
from solkit.gpu import DeviceFacts
from solkit.measure.host import cgroup_memory_bytes, cpu_facts
from solkit.measure.probe import Choice, Probe, choose, cuda_devices, cupy_extra

CPU = DeviceFacts(kind="cpu", name="a CPU")
CARD = DeviceFacts(
    kind="cuda",
    name="NVIDIA H200",
    uuid="GPU-8f5c2a10-1",
    pci_bus_id="0000:19:00.0",
    pci_device_id="2335",
    compute_capability="9.0",
    cuda_driver="13.0",
)
SECOND = DeviceFacts(
    kind="cuda",
    name="NVIDIA L4",
    index=1,
    uuid="GPU-77777777-2",
    pci_bus_id="0000:3b:00.0",
    pci_device_id="27B8",
    compute_capability="8.9",
    cuda_driver="13.0",
)
BOTH = Probe((CARD, SECOND))
NONE = Probe((), "no NVIDIA driver found (Driver Not Loaded)", "install the NVIDIA driver")


def take(
    device: str = "auto", *, found: Probe = BOTH, cupy: bool = True, platform: str = "linux"
) -> Choice:
    return choose(
        device, probe=lambda: found, cpu=lambda: CPU, has_cupy=lambda: cupy, platform=platform
    )


# -- choosing ------------------------------------------------------------------------------------


def test_auto_takes_the_first_card() -> None:
    """With a driver and CuPy, the first visible card is taken, and the others are mentioned."""
    expected = Choice("cuda", 0, CARD, "cuda:0, NVIDIA H200 (the first of 2: --device cuda:N)")
    assert expected == take()


def test_auto_without_a_driver_takes_the_cpu_and_says_why() -> None:
    """A laptop gets a true measurement of its CPU."""
    why = "no NVIDIA driver found (Driver Not Loaded); using the CPU"
    assert Choice("cpu", 0, CPU, why) == take(found=NONE)


def test_auto_without_cupy_takes_the_cpu_and_names_the_extra() -> None:
    """A card that CuPy is missing for is named, with the command that helps."""
    why = (
        "an NVIDIA H200 is here, but CuPy is not installed: pip install 'solkit[cuda13]'; "
        "using the CPU"
    )
    assert Choice("cpu", 0, CPU, why) == take(cupy=False)


def test_auto_outside_linux_takes_the_cpu() -> None:
    """Cards are measured on Linux only."""
    choice = take(platform="win32")
    assert "cpu" == choice.kind
    assert "solkit measures on Linux only (win32)" in choice.why


def test_the_cpu_is_taken_without_asking_for_cards() -> None:
    """`--device cpu` never touches the driver."""

    def ask() -> Probe:
        raise AssertionError("NVML was asked")

    assert Choice("cpu", 0, CPU, "the CPU, as asked") == choose("CPU", probe=ask, cpu=lambda: CPU)


@pytest.mark.parametrize(
    ("device", "facts"),
    [
        ("cuda", CARD),
        ("cuda:0", CARD),
        ("CUDA:1", SECOND),
        ("NVIDIA L4", SECOND),
        ("nvidia h200", CARD),
        ("GPU-7777", SECOND),
        ("gpu-8f5c2a10-1", CARD),
        ("0000:3b:00.0", SECOND),
        (" cuda:1 ", SECOND),
    ],
)
def test_a_card_goes_by_number_name_uuid_or_bus_id(device: str, facts: DeviceFacts) -> None:
    """Every way to name a card leads to it, and its index is its N."""
    choice = take(device)
    assert ("cuda", facts.index, facts) == (choice.kind, choice.index, choice.facts)


@pytest.mark.parametrize(
    ("device", "found", "message", "remedy"),
    [
        ("cuda", NONE, NONE.reason, NONE.remedy),
        ("cuda:0", NONE, NONE.reason, NONE.remedy),
        ("GPU-12", NONE, NONE.reason, NONE.remedy),
        (
            "cuda:2",
            BOTH,
            "there is no cuda:2: 2 usable here",
            "here: cuda:0 NVIDIA H200; cuda:1 NVIDIA L4",
        ),
    ],
)
def test_a_card_that_is_not_here_is_no_device(
    device: str, found: Probe, message: str, remedy: str
) -> None:
    """What was asked for is never replaced by something else; the reason comes with a remedy."""
    with pytest.raises(NoDevice) as caught:
        take(device, found=found)
    assert (message, remedy) == (caught.value.message, caught.value.remedy)


@pytest.mark.parametrize(
    "device", ["", "cuda:", "cuda:-1", "cuda:x", "tpu", "cuda:1234567", "cuda:²"]
)
def test_a_name_nobody_knows_is_bad_input(device: str) -> None:
    """A typing error lists what can be asked for."""
    with pytest.raises(BadInput) as caught:
        take(device)
    assert f"--device: unknown device {device.strip()!r}" == caught.value.message
    assert "NVIDIA L4, auto, cpu, cuda, cuda:N" in caught.value.remedy


def test_a_card_asked_for_without_cupy_is_no_device() -> None:
    """An explicit wish is not turned into the CPU; the command that helps is the remedy."""
    with pytest.raises(NoDevice) as caught:
        take("cuda:1", cupy=False)
    assert "an NVIDIA L4 is here, but CuPy is not installed" == caught.value.message
    assert "pip install 'solkit[cuda13]'" == caught.value.remedy


def test_the_measuring_process_sees_the_chosen_card_alone() -> None:
    """Bound by UUID, the card is device 0 there, whatever CUDA's own order is."""
    choice = take("cuda:1")
    assert {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "GPU-77777777-2",
    } == choice.environment
    assert 0 == choice.cuda_index


def test_a_card_without_a_uuid_is_left_where_cuda_has_it() -> None:
    """Jetson tells no UUID: nothing is bound, and the index stays."""
    bare = DeviceFacts(kind="cuda", name="Orin", index=0, uuid="0000:01:00.0")
    choice = take("cuda", found=Probe((bare,)))
    assert ({}, 0) == (choice.environment, choice.cuda_index)
    assert {} == take("cpu").environment


@pytest.mark.parametrize(
    ("cuda_driver", "capability", "extra"),
    [
        ("13.0", "9.0", "cuda13"),
        ("12.8", "9.0", "cuda12"),
        ("13.1", "7.0", "cuda12"),
        ("", "", "cuda12"),
    ],
)
def test_the_extra_fits_driver_and_card(cuda_driver: str, capability: str, extra: str) -> None:
    """CUDA 13 needs a driver that serves it and at least Turing; V100 stays with CUDA 12."""
    facts = DeviceFacts(
        kind="cuda", name="x", cuda_driver=cuda_driver, compute_capability=capability
    )
    assert extra == cupy_extra(facts)


# -- asking NVML ---------------------------------------------------------------------------------


def test_visible_cards_are_found() -> None:
    """The probe lists what CUDA_VISIBLE_DEVICES leaves, and has no reason to give."""
    found = cuda_devices(binding=FakeNvml(H200), environ={"CUDA_VISIBLE_DEVICES": "0"})
    assert ([H200["uuid"]], "") == ([facts.uuid for facts in found.devices], found.reason)


@pytest.mark.parametrize(
    ("binding", "environ", "reason"),
    [
        (
            FakeNvml(init_error="Driver Not Loaded"),
            {},
            "no NVIDIA driver found (Failed to initialize NVML: Driver Not Loaded)",
        ),
        (FakeNvml(), {}, "an NVIDIA driver is loaded, but it lists no card"),
        (
            FakeNvml(H200),
            {"CUDA_VISIBLE_DEVICES": ""},
            "CUDA_VISIBLE_DEVICES='' hides every card (1 here)",
        ),
        (FakeNvml(H200 | {"mig": [1, 1]}), {}, "the card is in MIG mode and has no instance"),
    ],
)
def test_no_card_is_a_reason_with_a_remedy(
    binding: FakeNvml, environ: dict[str, str], reason: str
) -> None:
    """A machine without a usable card is no error: the probe says why, and what to do."""
    found = cuda_devices(binding=binding, environ=environ)
    assert ((), reason) == (found.devices, found.reason)
    assert found.remedy


def test_a_mig_instance_can_be_asked_for_by_its_uuid() -> None:
    """The chosen instance is what the measuring process sees."""
    card = H200 | {"mig": [1, 1], "instances": [instance(), instance(uuid="MIG-second")]}
    choice = choose(
        "MIG-second",
        probe=lambda: cuda_devices(binding=FakeNvml(card), environ={}),
        has_cupy=lambda: True,
        platform="linux",
    )
    assert "MIG-second" == choice.environment["CUDA_VISIBLE_DEVICES"]
    assert "cuda:1, NVIDIA H200 MIG 1g.18gb, as asked" == choice.why


# -- the host ------------------------------------------------------------------------------------


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


CACHE = "sys/devices/system/cpu/cpu{core}/cache/index{index}/{what}"


def caches(core: int, shared: str) -> dict[str, str]:
    told = [
        ("1", "Data", "32K", str(core)),
        ("1", "Instruction", "64M", str(core)),
        ("2", "Unified", "1024K", str(core)),
        ("3", "Unified", "32M", shared),
    ]
    return {
        CACHE.format(core=core, index=index, what=what): f"{value}\n"
        for index, row in enumerate(told)
        for what, value in zip(("level", "type", "size", "shared_cpu_list"), row, strict=True)
    }


MACHINE = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Example CPU 9000 @ 2.5GHz\n",
    "proc/meminfo": "MemTotal:       16384 kB\nMemFree:  10 kB\nMemAvailable:    8192 kB\n",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3700000\n",
}


def test_the_cpu_is_described_by_the_kernels_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name, usable cores, memory, all last-level caches together, and the highest clock."""
    monkeypatch.setattr("solkit.measure.host.usable_cores", lambda: (0, 1, 8))
    root = write(tmp_path, MACHINE | caches(0, "0-7") | caches(1, "0-7") | caches(8, "8-15"))
    assert DeviceFacts(
        kind="cpu",
        name="Example CPU 9000 @ 2.5GHz",
        core_count=3,
        dram_bytes=16 * 2**20,
        dram_free_bytes=8 * 2**20,
        l2_bytes=64 * 2**20,
        max_clock_hz=3.7e9,
    ) == cpu_facts(root=root, system="linux")


def test_an_arm_board_gives_its_name(tmp_path: Path) -> None:
    """Arm kernels print numbers instead of a model name."""
    root = write(
        tmp_path,
        {
            "proc/cpuinfo": "CPU implementer : 0x41\n",
            "sys/firmware/devicetree/base/model": "Example Board\0",
        },
    )
    assert "Example Board" == cpu_facts(root=root, system="linux").name


def test_what_the_system_does_not_tell_is_none_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty machine yields no zeros."""
    monkeypatch.setattr("solkit.measure.host.os.sysconf_names", {})
    facts = cpu_facts(root=tmp_path, system="linux")
    assert (None, None, None, None) == (
        facts.dram_bytes,
        facts.dram_free_bytes,
        facts.l2_bytes,
        facts.max_clock_hz,
    )
    assert (
        "the size of the last-level cache is not told here",
        "available memory is not told here",
    ) == facts.notes


@pytest.mark.parametrize(
    ("files", "limit", "left"),
    [
        ({"proc/self/cgroup": "0::/\n"}, None, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, None, None),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/memory.max": "1000\n",
                "sys/fs/cgroup/a/b/memory.current": "400\n",
                "sys/fs/cgroup/a/b/memory.stat": "anon 300\ninactive_file 100\n",
                "sys/fs/cgroup/a/memory.max": "2000\n",
                "sys/fs/cgroup/a/memory.current": "1700\n",
            },
            1000,
            300,
        ),
        (
            {
                "proc/self/cgroup": "5:cpu,memory:/job\n",
                "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "5000\n",
                "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "6000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            5000,
            0,
        ),
    ],
)
def test_the_least_cgroup_limit_holds(
    tmp_path: Path, files: dict[str, str], limit: int | None, left: int | None
) -> None:
    """Every ancestor counts, in both versions; page cache that can be dropped is free."""
    assert (limit, left) == cgroup_memory_bytes(write(tmp_path, files))


def test_a_container_has_the_memory_of_its_cgroup(tmp_path: Path) -> None:
    """Planning against the host's memory would get the process killed."""
    root = write(
        tmp_path,
        MACHINE
        | {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": str(4 * 2**20),
            "sys/fs/cgroup/memory.current": str(2**20),
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
        },
    )
    facts = cpu_facts(root=root, system="linux")
    assert (4 * 2**20, 3 * 2**20) == (facts.dram_bytes, facts.dram_free_bytes)
    assert "memory is limited to 4.00 MiB by the cgroup" in facts.notes
    assert any(note.startswith("the cgroup grants the time of 0.50 of") for note in facts.notes)


def test_this_very_host_is_known() -> None:
    """Here and now the probe finds a name, cores and memory."""
    facts = cpu_facts()
    assert "cpu" == facts.kind
    assert facts.name
    assert 1 <= (facts.core_count or 0)
