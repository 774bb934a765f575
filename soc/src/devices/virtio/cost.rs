//! How long a virtio device takes for a chain.
//!
//! Such a device is no piece of hardware, so there is nothing to calibrate it by. It is charged as if the board's DMA engine
//! ([`Timing`]) walked its rings and moved its data: a memory latency for each word of a ring and each descriptor, and bursts
//! for the data. So the same guest sees the same memory system through either.

use super::queue::Chain;
use crate::devices::axi_dma::{Timing, clocks};
use crate::time::SimTime;

/// Accesses to the rings for one chain: available index and slot, used element and index, the word about interrupts.
const RING_ACCESSES: u64 = 5;

fn rings(chain: &Chain, timing: &Timing) -> SimTime {
    clocks(timing.tail_to_fetch + timing.fetch * (RING_ACCESSES + chain.pieces() as u64))
}

/// Fetching `chain` and reading `bytes` of it.
pub(super) fn reading(chain: &Chain, bytes: u64) -> SimTime {
    let timing = Timing::default();
    rings(chain, &timing) + timing.transmit_data(bytes)
}

/// Fetching `chain` and writing `bytes` to it.
pub(super) fn writing(chain: &Chain, bytes: u64) -> SimTime {
    let timing = Timing::default();
    rings(chain, &timing) + timing.receive_data(bytes)
}
