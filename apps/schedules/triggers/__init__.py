"""SCHEDULES: triggers from outside, their signatures, and topics."""
