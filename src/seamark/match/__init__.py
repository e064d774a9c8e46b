"""Which records a watcher wants: filters, and the index that finds the watchers of one record."""
