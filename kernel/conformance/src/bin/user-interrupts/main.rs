//! The duties of the kernel towards threads with user interrupts, on the machine: a root server makes receivers and senders and looks
//! at what arrives. The weaknesses of earlier systems that each row excludes are named D1 to D24 in `docs/user-interrupts.md`.
//! Prints as `sel4-conformance` does. Needs two harts.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod bell;
#[cfg(target_os = "none")]
mod delivery;
#[cfg(target_os = "none")]
mod storm;
#[cfg(target_os = "none")]
mod stub;
#[cfg(target_os = "none")]
mod switch;
#[cfg(target_os = "none")]
mod teardown;

#[cfg(target_os = "none")]
sel4_conformance::root_server!(run);

#[cfg(target_os = "none")]
fn run(mut machine: sel4_conformance::server::Machine, _: u64) -> ! {
    delivery::run(&mut machine);
    switch::run(&mut machine);
    teardown::run(&mut machine);
    storm::run(&mut machine);
    let (rows, failed) = machine.count();
    sel4_conformance::server::machine::print(format_args!("user-interrupts: {rows} rows, {failed} failed\n"));
    machine.end(u16::from(failed != 0))
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!(
        "a root server of the machine: cargo test -p images --test user_interrupts builds an image around it and runs it"
    );
}
