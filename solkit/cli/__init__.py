"""One thin file a command: parse, call, print."""
