"""Which channel is told what, and when: severities, quiet hours, escalation, and at most a few messages at once."""
