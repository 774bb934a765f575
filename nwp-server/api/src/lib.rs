//! Client side of the network-protocol server.
