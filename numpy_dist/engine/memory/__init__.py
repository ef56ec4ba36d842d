"""Memory of a rank: storages, handles on them, the pool that they come from, and how much there is."""
