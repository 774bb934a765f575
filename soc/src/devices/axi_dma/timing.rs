//! How long the engine takes, in clocks of its 100 MHz domain.
//!
//! The latencies of the start path are those of PG021, "Latency"; they assume an ideal memory, so the memory's answer to a descriptor
//! read is extra. The rest is fitted to the published transmit benchmark of the board (poll, interrupt and future columns, 60 to
//! 16128 bytes): a packet of n bytes costs the memory-to-stream channel 195 + 0.52 n clocks. The slope is a 64-byte burst every 33
//! clocks: 16 beats and 17 clocks until the next burst starts. The receive side could not be measured there; its
//! rate is PG021's 298.59 MB/s at 10 000 bytes.

use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// Clock of the DMA, the scatter-gather engine and the streams.
pub const CLOCK: SimTime = SimTime::from_ns(10);
/// Bytes of a burst: 16 beats of a 32-bit bus.
const BURST_BYTES: u64 = 64;
/// Bytes of a beat.
const BEAT_BYTES: u64 = 4;
/// Clocks in one unit of IRQDelay (build parameter C_DLYTMR_RESOLUTION).
const DELAY_RESOLUTION: u64 = 125;

/// Clocks of each step. [`Timing::default`] is the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Tail write, or the end of the last descriptor, to the descriptor's read request.
    pub tail_to_fetch: u64,
    /// Memory's answer to that request.
    pub fetch: u64,
    /// Descriptor there to data read request.
    pub fetch_to_read: u64,
    /// Data there to stream.
    pub read_to_stream: u64,
    /// Clocks of a read burst beyond its beats.
    pub read_burst: u64,
    /// Last byte in the MAC to descriptor written back and packet counted, transmit.
    pub transmit_update: u64,
    /// Stream valid to write request.
    pub stream_to_write: u64,
    /// Clocks of a write burst beyond its beats.
    pub write_burst: u64,
    /// Last byte written to descriptor written back and packet counted, receive.
    pub receive_update: u64,
    /// Soft reset.
    pub reset: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            tail_to_fetch: 10,
            fetch: 30,
            fetch_to_read: 28,
            read_to_stream: 6,
            read_burst: 17,
            // What is left of the fitted 195.
            transmit_update: 121,
            stream_to_write: 39,
            write_burst: 5,
            receive_update: 30,
            reset: 16,
        }
    }
}

impl Timing {
    /// `bytes` in bursts with `extra` clocks each.
    fn bursts(bytes: u64, extra: u64) -> u64 {
        bytes.div_ceil(BEAT_BYTES) + bytes.div_ceil(BURST_BYTES) * extra
    }

    /// Descriptor there to last byte in the MAC.
    pub(crate) fn transmit_data(&self, bytes: u64) -> SimTime {
        clocks(self.fetch_to_read + Self::bursts(bytes, self.read_burst) + self.read_to_stream)
    }

    /// Packet waiting to last byte in memory.
    pub(crate) fn receive_data(&self, bytes: u64) -> SimTime {
        clocks(self.stream_to_write + Self::bursts(bytes, self.write_burst))
    }
}

/// A number of clocks as time.
pub(crate) const fn clocks(count: u64) -> SimTime {
    SimTime::from_ps(count * CLOCK.as_ps())
}

/// `units` of the delay timer as time.
pub(super) const fn delay_units(units: u64) -> SimTime {
    clocks(units * DELAY_RESOLUTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_follows_the_fit_of_the_board() {
        let timing = Timing::default();
        for bytes in [60u64, 64, 256, 512, 1000, 1514, 4096, 9000, 16_128] {
            let fixed = timing.tail_to_fetch + timing.fetch + timing.transmit_update;
            let model = (clocks(fixed) + timing.transmit_data(bytes)).as_ps() as f64 / CLOCK.as_ps() as f64;
            let fit = 195.0 + 0.519 * bytes as f64;
            assert!((model / fit - 1.0).abs() < 0.015, "{bytes} bytes: {model} clocks, fit {fit}");
        }
    }

    #[test]
    fn receive_has_the_rate_of_the_product_guide() {
        let time = Timing::default().receive_data(10_000).as_ps() as f64 / 1e12;
        let rate = 10_000.0 / time / 1e6;
        assert!((rate / 298.59 - 1.0).abs() < 0.01, "{rate} MB/s");
    }
}
