"""Records and history in Postgres (SPEC 10)."""
