//! The tables, one per object. Each makes its objects from a fresh block and runs its rows.

pub mod asid;
pub mod cnode;
pub mod domain;
pub mod ipc;
pub mod irq;
pub mod page;
pub mod page_table;
pub mod tcb;
pub mod untyped;
pub mod wrong;

use crate::row::System;

/// Runs every table.
pub fn all(system: &mut impl System) {
    wrong::run(system);
    ipc::run(system);
    untyped::run(system);
    cnode::run(system);
    cnode::rotate(system);
    cnode::guards(system);
    tcb::registers(system);
    tcb::scheduling(system);
    tcb::space(system);
    tcb::notification(system);
    tcb::rest(system);
    page::run(system);
    page::sizes(system);
    page_table::run(system);
    asid::run(system);
    irq::run(system);
    domain::run(system);
}
