"""ClickHouse for tests: its engine of today behind a small HTTP front, in a virtual environment of its own."""
