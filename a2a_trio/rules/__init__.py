"""Pure decisions: time and randomness are arguments; no I/O."""
