"""What users need to test their own agents: strategies, transports and fakes."""
