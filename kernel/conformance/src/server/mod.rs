//! What a root server is made of, without any library: its programs are `sel4-conformance` and `sel4-profile`.
//!
//! | file | what |
//! |---|---|
//! | `start` | entry, system calls, counters, IPC buffers |
//! | `boot_info` | the BootInfo page, as libsel4 reads it |
//! | `machine` | the tables' [`System`](crate::System): slots, memory, calls; console and end |
//! | `actor` | threads that execute a few instructions and then fault |

pub mod actor;
pub mod boot_info;
pub mod machine;
pub mod start;

pub use machine::Machine;

/// Makes `fn(Machine, others: u64) -> !` the root server; `others` is the OR of all registers but a0 at the entry.
#[macro_export]
macro_rules! root_server {
    ($main:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn root_server(info: *const $crate::server::boot_info::BootInfo, others: u64) -> ! {
            // SAFETY: the kernel starts the root task with the address of its BootInfo page in a0; nobody writes the page any more.
            $main($crate::server::Machine::new(unsafe { &*info }), others)
        }
    };
}
