"""The client of the flags surface: a verified mirror of what was subscribed to, and evaluation that never waits for it."""
