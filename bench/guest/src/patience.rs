//! How client and server of the null call wait, as the manifest asks for.

use libipc::port::{Patience, Port};

/// Dozes at once, and never deeper than Armed: every wake is a user interrupt.
const ARMED: Patience = Patience { polls: 0, watches: u32::MAX };

/// What the port thinks best, or [`ARMED`].
pub fn patience(armed: bool, port: &impl Port) -> Patience {
    if armed { ARMED } else { port.patience() }
}
