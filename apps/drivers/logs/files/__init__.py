"""OBSERVE: lines of requests as Parquet files, written, merged and deleted."""
