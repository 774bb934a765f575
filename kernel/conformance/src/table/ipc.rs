//! Capabilities that are invoked by sending: endpoints and notifications. What else happens to messages takes a second thread.

use crate::number::{Invocation::*, object as o, rights, slot};
use crate::row::System;

/// Runs the table.
pub fn run(s: &mut impl System) {
    let u = s.block();
    let (ep, n) = (s.make(u, o::ENDPOINT, 0), s.make(u, o::NOTIFICATION, 0));
    let (ep_read, ep_none, ep_grant) = (s.copy(ep, rights::READ), s.copy(ep, 0), s.copy(ep, 12));
    let (n_read, n_none, n_write) = (s.copy(n, rights::READ), s.copy(n, 0), s.copy(n, rights::WRITE));
    let (free, target) = (s.fresh(), s.fresh());
    s.check(
        "endpoints and notifications",
        &[
            ("endpoint, Read only", ep_read, Unknown, &[1, 2, 3], &[], 2, &[0]),
            ("endpoint, no rights", ep_none, Unknown, &[], &[], 2, &[0]),
            ("endpoint, Grant and GrantReply only", ep_grant, Unknown, &[], &[], 2, &[0]),
            ("the label does not matter", ep_read, CNodeDelete, &[free, 64], &[], 2, &[0]),
            ("notification, Read only", n_read, Unknown, &[], &[], 2, &[0]),
            ("notification, no rights", n_none, Unknown, &[], &[], 2, &[0]),
            ("signal", n, Unknown, &[1, 2, 3], &[], 0, &[]),
            ("signal again, any label", n_write, CNodeDelete, &[], &[], 0, &[]),
            ("rights do not come back", slot::CNODE, CNodeCopy, &[free, 64, ep_none, 64, 15], &[slot::CNODE], 0, &[]),
            ("endpoint, still no rights", free, Unknown, &[], &[], 2, &[0]),
            ("nor by Mint", slot::CNODE, CNodeMint, &[target, 64, n_read, 64, 15, 7], &[slot::CNODE], 0, &[]),
            ("notification, still Read only", target, Unknown, &[], &[], 2, &[0]),
        ],
    );
}
