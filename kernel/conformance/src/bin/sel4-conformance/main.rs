//! The tables of what seL4 answers, run on the machine, and what takes a second thread. A line for each row that comes out
//! differently, a count; the machine ends with 0 if all is well, else with 1.
//!
//! | file | what |
//! |---|---|
//! | `boot` | what a root task finds when it starts |
//! | `fault` `page` | faults and their replies; what a mapping allows |
//! | `ipc` `queue` `transfer` `reply` | messages and signals, queues, capabilities in messages, reply capabilities |
//! | `order` | who runs next |

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod boot;
#[cfg(target_os = "none")]
mod fault;
#[cfg(target_os = "none")]
mod ipc;
#[cfg(target_os = "none")]
mod order;
#[cfg(target_os = "none")]
mod page;
#[cfg(target_os = "none")]
mod queue;
#[cfg(target_os = "none")]
mod reply;
#[cfg(target_os = "none")]
mod transfer;

#[cfg(target_os = "none")]
sel4_conformance::root_server!(run);

#[cfg(target_os = "none")]
fn run(mut machine: sel4_conformance::server::Machine, others: u64) -> ! {
    boot::run(&mut machine, others);
    sel4_conformance::table::all(&mut machine);
    fault::run(&mut machine);
    page::run(&mut machine);
    ipc::run(&mut machine);
    queue::run(&mut machine);
    transfer::run(&mut machine);
    reply::run(&mut machine);
    order::run(&mut machine);
    let (rows, failed) = machine.count();
    sel4_conformance::server::machine::print(format_args!("sel4-conformance: {rows} rows, {failed} failed\n"));
    machine.end(u16::from(failed != 0))
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!(
        "a root server of the machine: cargo test -p images --test conformance builds an image around it and runs it"
    );
}
