"""All effects: devices, workers, clocks."""
