"""Rules of frontends and backends: what each does, and under which condition."""
