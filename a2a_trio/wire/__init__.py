"""Pure values and their JSON forms: no I/O, no clock, no randomness, no logging."""
