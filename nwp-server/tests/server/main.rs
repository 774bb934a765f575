//! The server as its clients see it, without kernel and hardware.

mod hostile;
mod sockets;
mod world;
