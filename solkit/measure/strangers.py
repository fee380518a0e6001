"""Who else is on a card before solkit opens it: their work ends up in the times."""

from dataclasses import dataclass
from pathlib import Path

from solkit.errors import NoDevice
from solkit.measure.device.nvml import Handle, Nvml
from solkit.units import capacity

# A CUDA context takes some hundred MB on every card; an idle H200 without one has 0.8 MB in use.
_CONTEXT_BYTES = 64 * 2**20
_MOST_NAMED = 5
_MOST_NAME = 40


@dataclass(frozen=True, slots=True)
class Strangers:
    """Other processes on a card, by id and name, and what shows of those the driver hides.

    names: empty for a process of another container. hidden_bytes: memory in use that no process
    in the driver's lists explains. busy_fraction: how busy the card was in the last moments.
    """

    process_ids: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    hidden_bytes: int = 0
    busy_fraction: float | None = None

    @property
    def count(self) -> int:
        """How many there are at least."""
        return len(self.process_ids) or int(self.hidden)

    @property
    def hidden(self) -> bool:
        """Whether somebody is there whom the driver does not name, as in a container."""
        return not self.process_ids and self.hidden_bytes > _CONTEXT_BYTES

    @property
    def warning(self) -> str:
        """What to say of them in one line; empty where there is nobody."""
        if not self.count:
            return ""
        busy = "" if not self.busy_fraction else f", which is {self.busy_fraction:.0%} busy"
        if not self.process_ids:
            return (
                f"somebody whom the driver does not name has {capacity(self.hidden_bytes)} of this "
                f"card{busy}; times may be disturbed"
            )
        named = [
            f"pid {process_id}" + (f" ({name})" if name else "")
            for process_id, name in zip(self.process_ids, self.names, strict=True)
        ]
        more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
        who = "1 other process has" if len(named) == 1 else f"{len(named)} other processes have"
        listed = ", ".join([*named[:_MOST_NAMED], *more])
        return f"{who} this card{busy}: {listed}; times may be disturbed"


def strangers(uuid: str, nvml: Nvml | None = None) -> Strangers:
    """Look who is on a card that this process and its worker have not opened yet."""
    session = nvml or Nvml()
    try:
        handles = session.handles(uuid)
        process_ids = session.process_ids(uuid)
        rates = session.ask("nvmlDeviceGetUtilizationRates", handles.card)
        return Strangers(
            process_ids,
            tuple(_name(process_id) for process_id in process_ids),
            0 if process_ids else _hidden_bytes(session, handles.own),
            None if rates is None else int(rates.gpu) / 100,
        )
    except NoDevice:  # no NVML, or a card it does not know: nothing is known of others either
        return Strangers()
    finally:
        if nvml is None:
            session.close()


def _hidden_bytes(session: Nvml, own: Handle) -> int:
    """Count memory that is neither free nor the driver's own; a display's is no stranger's."""
    memory = session.memory(own, [])
    if memory is None or not hasattr(memory, "reserved"):
        return 0
    if session.ask("nvmlDeviceGetGraphicsRunningProcesses", own):
        return 0
    return max(0, int(memory.total) - int(memory.free) - int(memory.reserved))


def _name(process_id: int) -> str:
    """Return the name of a process of this machine, in printable characters."""
    try:
        text = Path(f"/proc/{process_id}/comm").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "".join(sign if sign.isprintable() else "?" for sign in text.strip())[:_MOST_NAME]
