//! A root server that knows seL4 and nothing of Wakeline: it has the registers that libsel4 uses, the BootInfo page, and the tables of
//! what seL4 answers. It prints a line for each row that comes out differently, a count, and ends the machine: 0 if all is well.
//!
//! | file | what |
//! |---|---|
//! | `start` | entry, system calls, IPC buffers |
//! | `boot_info` | the BootInfo page, as libsel4 reads it |
//! | `machine` | the tables' [`System`](sel4_conformance::System): slots, memory, calls; console and end |
//! | `boot` | what a root task finds when it starts |
//! | `actor` | threads that execute a few instructions and then fault |
//! | `fault` `ipc` `transfer` `reply` `order` | what a second thread is needed for |

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod actor;
#[cfg(target_os = "none")]
mod boot;
#[cfg(target_os = "none")]
mod boot_info;
#[cfg(target_os = "none")]
mod fault;
#[cfg(target_os = "none")]
mod ipc;
#[cfg(target_os = "none")]
mod machine;
#[cfg(target_os = "none")]
mod order;
#[cfg(target_os = "none")]
mod reply;
#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
mod transfer;

/// `info`: address of the BootInfo page, from a0. `others`: all other registers at the entry, ORed.
#[cfg(target_os = "none")]
fn run(info: &'static boot_info::BootInfo, others: u64) -> ! {
    let mut machine = machine::Machine::new(info);
    boot::run(&mut machine, others);
    sel4_conformance::table::all(&mut machine);
    fault::run(&mut machine);
    ipc::run(&mut machine);
    transfer::run(&mut machine);
    reply::run(&mut machine);
    order::run(&mut machine);
    machine.end()
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!(
        "a root server of the machine: cargo test -p images --test conformance builds an image around it and runs it"
    );
}
