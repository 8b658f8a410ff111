"""Finding other agents: a file registry on this machine, mDNS on the network, gateways beyond it."""
