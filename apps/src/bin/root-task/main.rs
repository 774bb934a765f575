//! The root task: the first program. It builds the system that the boot archive describes, starts it, and stays to hear of lines,
//! faults and exits.
//!
//! It decides nothing: slots, addresses, badges and rights were assigned by the image builder (`system.dtb`, told in
//! `images/src/tree.rs`). What it adds is what only the machine knows: where the devices are, which interrupts they have, whether
//! there are user interrupts. It runs at the highest priority and is otherwise asleep.
//!
//! | file | what |
//! |---|---|
//! | `archive` | the boot archive behind this program |
//! | `machine` | the device tree of the machine: devices, time base, how to end |
//! | `memory` | objects out of untyped memory, slots, device frames |
//! | `vspace` | mapping; a window to fill frames |
//! | `process` | a program: CSpace, address space, threads |
//! | `channel` | what two programs share |
//! | `supervise` | lines, exits |
//! | `fault` | what is printed about a fault |

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod archive;
#[cfg(target_os = "none")]
mod channel;
#[cfg(target_os = "none")]
mod device;
#[cfg(target_os = "none")]
mod failure;
#[cfg(target_os = "none")]
mod fault;
#[cfg(target_os = "none")]
mod machine;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod process;
#[cfg(target_os = "none")]
mod supervise;
#[cfg(target_os = "none")]
mod system;
#[cfg(target_os = "none")]
mod vspace;

#[cfg(target_os = "none")]
mod program {
    use crate::machine::{self, Machine};
    use crate::memory::Memory;
    use crate::system::System;
    use userlib::{BootInfo, println};

    userlib::root_task!(main, stack = 64 << 10, heap = 512 << 10);

    fn main(boot_info: &'static BootInfo) -> ! {
        userlib::rt::panic::on_panic(|| machine::end(1));
        let mut memory = Memory::new(boot_info);
        let built = Machine::new(boot_info, &mut memory).and_then(|machine| System::build(&machine, &mut memory));
        match built {
            Ok(system) => system.supervise(memory),
            Err(failure) => {
                println!("root: cannot build the system: {failure}");
                machine::end(1)
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("the root task is a guest program; it is part of every image: `cargo run -p images -- build hello`");
}
