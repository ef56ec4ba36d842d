"""A device that is none, for tests: memory that only the backend reaches, and work that waits for a fence."""
