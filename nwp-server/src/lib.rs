//! The user-space network-protocol server.
