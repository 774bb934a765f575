//! What to do, from the kernel arguments in the device tree.

use abi::bootinfo::{BootInfo, EXTRA_FDT, ExtraHeader};
use abi::label::Table;
use dtoolkit::fdt::Fdt;
use dtoolkit::{Node, Property};

/// Most workers: two for each of four harts.
pub const MAX_WORKERS: usize = 8;

/// The arguments.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Everything random follows from it.
    pub seed: u64,
    /// System calls to make.
    pub calls: u64,
    /// Numbering of the invocations.
    pub labels: Table,
    /// Harts.
    pub harts: u64,
    /// Worker threads.
    pub workers: usize,
}

impl Plan {
    /// Reads the arguments; what is not given has a default.
    pub fn read(info: &'static BootInfo) -> Self {
        let harts = info.num_nodes;
        let workers = if harts == 1 { 4 } else { (2 * harts as usize).min(MAX_WORKERS) };
        let mut plan = Self { seed: 1, calls: 10_000, labels: Table::Smp, harts, workers };
        for word in arguments(info).unwrap_or_default().split_ascii_whitespace() {
            match word.split_once('=') {
                Some(("seed", value)) => plan.seed = value.parse().unwrap_or(plan.seed),
                Some(("calls", value)) => plan.calls = value.parse().unwrap_or(plan.calls),
                Some(("labels", "up")) => plan.labels = Table::Up,
                _ => {}
            }
        }
        plan
    }
}

/// `/chosen/bootargs` of the device tree that the kernel put behind BootInfo.
fn arguments(info: &'static BootInfo) -> Option<&'static str> {
    const PAGE: usize = 4096;
    let extra = (&raw const *info as usize + PAGE) as *const ExtraHeader;
    // SAFETY: `extra_len` bytes behind the BootInfo page are mapped and hold chunks (seL4 manual, "Initial thread's environment").
    let tree: &'static [u8] = unsafe {
        if info.extra_len == 0 || (*extra).id != EXTRA_FDT {
            return None;
        }
        core::slice::from_raw_parts(extra.add(1).cast(), (*extra).len as usize - size_of::<ExtraHeader>())
    };
    Fdt::new(tree).ok()?.find_node("/chosen")?.property("bootargs")?.value_as::<&'static str>().ok()
}
