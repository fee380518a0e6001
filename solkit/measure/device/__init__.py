"""One class a device; each library has one door."""
