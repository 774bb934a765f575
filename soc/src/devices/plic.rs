//! PLIC (RISC-V platform-level interrupt controller specification 1.0.0): 95 level sources, contexts 2h (M) and 2h + 1 (S).

use crate::config::MAX_HARTS;
use crate::device::state_is_all;
use crate::device::{BusError, Context, Device};
use crate::hart::csr::irq;
use crate::snapshot::array;
use serde::{Deserialize, Serialize};

/// Highest source number.
pub const SOURCES: u32 = 95;
const PRIORITY_MAX: u32 = 7;
const PENDING: u64 = 0x1000;
const ENABLE: u64 = 0x2000;
const ENABLE_STRIDE: u64 = 0x80;
const CONTEXT: u64 = 0x20_0000;
const CONTEXT_STRIDE: u64 = 0x1000;
const WORDS: u64 = SOURCES as u64 / 32 + 1;

/// The controller. Sets of sources are bit masks, bit n = source n.
#[derive(Serialize, Deserialize)]
pub struct Plic {
    #[serde(with = "array")]
    priority: [u32; SOURCES as usize + 1],
    level: u128,
    pending: u128,
    /// Claimed and not yet completed: the gateway holds further requests back.
    claimed: u128,
    enable: [u128; 2 * MAX_HARTS],
    threshold: [u32; 2 * MAX_HARTS],
    harts: usize,
}

impl Plic {
    /// A controller in reset.
    pub fn new(harts: usize) -> Self {
        Self {
            priority: [0; SOURCES as usize + 1],
            level: 0,
            pending: 0,
            claimed: 0,
            enable: [0; 2 * MAX_HARTS],
            threshold: [0; 2 * MAX_HARTS],
            harts,
        }
    }

    /// Sets the level of a source's line.
    pub fn set_source(&mut self, source: u32, level: bool) {
        debug_assert!((1..=SOURCES).contains(&source));
        if level {
            self.level |= 1 << source;
            self.pending |= (1 << source) & !self.claimed;
        } else {
            // A request that the gateway has forwarded stays pending until it is claimed (PLIC specification, "Interrupt Gateways").
            self.level &= !(1 << source);
        }
    }

    /// The source that `context` would claim: highest priority, then lowest number; 0 if none.
    fn best(&self, context: usize) -> u32 {
        let mut rest = self.pending & self.enable[context];
        let mut best = (0, 0);
        while rest != 0 {
            let source = rest.trailing_zeros();
            rest &= rest - 1;
            let priority = self.priority[source as usize];
            if priority > best.0 {
                best = (priority, source);
            }
        }
        best.1
    }

    /// True if `context`'s line is up.
    pub fn asks(&self, context: usize) -> bool {
        self.pending & self.enable[context] != 0 && {
            let best = self.best(context);
            best != 0 && self.priority[best as usize] > self.threshold[context]
        }
    }

    /// Drives the external interrupt lines of all harts.
    pub fn drive_lines(&self, mut set: impl FnMut(usize, u32, bool)) {
        for hart in 0..self.harts {
            set(hart, irq::MEI, self.asks(2 * hart));
            set(hart, irq::SEI, self.asks(2 * hart + 1));
        }
    }

    fn context(&self, offset: u64, base: u64, stride: u64) -> Option<usize> {
        let context = ((offset - base) / stride) as usize;
        (context < 2 * self.harts).then_some(context)
    }

    fn word(set: u128, index: u64) -> u64 {
        if index < WORDS { (set >> (32 * index)) as u64 & 0xFFFF_FFFF } else { 0 }
    }
}

impl Device for Plic {
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        if size != 4 {
            return Err(BusError::Size);
        }
        Ok(match offset {
            0..PENDING => self.priority.get((offset / 4) as usize).copied().map_or(0, u64::from),
            PENDING..ENABLE => Self::word(self.pending, (offset - PENDING) / 4),
            ENABLE..CONTEXT => match self.context(offset, ENABLE, ENABLE_STRIDE) {
                Some(context) => Self::word(self.enable[context], offset % ENABLE_STRIDE / 4),
                None => 0,
            },
            _ => match (self.context(offset, CONTEXT, CONTEXT_STRIDE), offset % CONTEXT_STRIDE) {
                (Some(context), 0) => u64::from(self.threshold[context]),
                (Some(context), 4) => {
                    let source = self.best(context);
                    if source != 0 {
                        self.pending &= !(1 << source);
                        self.claimed |= 1 << source;
                        self.drive_lines(|hart, bit, level| cx.hart_line(hart, bit, level));
                    }
                    u64::from(source)
                }
                _ => 0,
            },
        })
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        if size != 4 {
            return Err(BusError::Size);
        }
        let value = value as u32;
        match offset {
            4..PENDING => {
                if let Some(priority) = self.priority.get_mut((offset / 4) as usize) {
                    *priority = value & PRIORITY_MAX;
                }
            }
            ENABLE..CONTEXT => {
                let word = offset % ENABLE_STRIDE / 4;
                if let Some(context) = self.context(offset, ENABLE, ENABLE_STRIDE)
                    && word < WORDS
                {
                    let enable = &mut self.enable[context];
                    *enable = *enable & !(0xFFFF_FFFF << (32 * word)) | u128::from(value) << (32 * word);
                    // Source 0 does not exist.
                    *enable &= !1;
                }
            }
            CONTEXT.. => match (self.context(offset, CONTEXT, CONTEXT_STRIDE), offset % CONTEXT_STRIDE) {
                (Some(context), 0) => self.threshold[context] = value & PRIORITY_MAX,
                (Some(context), 4) if (1..=SOURCES).contains(&value) && self.enable[context] >> value & 1 != 0 => {
                    self.claimed &= !(1 << value);
                    self.pending |= self.level & 1 << value;
                }
                _ => {}
            },
            _ => {}
        }
        self.drive_lines(|hart, bit, level| cx.hart_line(hart, bit, level));
        Ok(())
    }

    state_is_all!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::Bench;

    const S0: u64 = CONTEXT + CONTEXT_STRIDE;

    fn with(sources: &[(u32, u32)]) -> (Plic, Bench) {
        let (mut plic, mut cx) = (Plic::new(2), Bench::default());
        for &(source, priority) in sources {
            plic.write(&mut cx, 4 * u64::from(source), 4, u64::from(priority)).unwrap();
            let at = ENABLE + ENABLE_STRIDE + 4 * u64::from(source / 32);
            let old = plic.read(&mut cx, at, 4).unwrap();
            plic.write(&mut cx, at, 4, old | 1 << (source % 32)).unwrap();
        }
        (plic, cx)
    }

    #[test]
    fn claim_order_and_completion() {
        let (mut plic, mut cx) = with(&[(10, 1), (40, 3), (41, 3)]);
        for source in [10, 41, 40] {
            plic.set_source(source, true);
        }
        assert!(plic.asks(1) && !plic.asks(0) && !plic.asks(3));
        let claims: Vec<_> = (0..4).map(|_| plic.read(&mut cx, S0 + 4, 4).unwrap()).collect();
        assert_eq!(claims, [40, 41, 10, 0]);
        assert!(!plic.asks(1));
        plic.write(&mut cx, S0 + 4, 4, 40).unwrap();
        assert!(plic.asks(1), "the level is still high");
        plic.set_source(40, false);
        assert_eq!(plic.read(&mut cx, S0 + 4, 4), Ok(40), "a forwarded request stays");
        plic.write(&mut cx, S0 + 4, 4, 40).unwrap();
        assert!(!plic.asks(1));
    }

    #[test]
    fn threshold_masks_the_line() {
        let (mut plic, mut cx) = with(&[(12, 2)]);
        plic.set_source(12, true);
        plic.write(&mut cx, S0, 4, 2).unwrap();
        assert!(!plic.asks(1));
        plic.write(&mut cx, S0, 4, 1).unwrap();
        assert!(plic.asks(1));
        assert!(cx.hart_lines.contains(&(0, irq::SEI, true)));
    }

    #[test]
    fn other_sizes_and_contexts() {
        let (mut plic, mut cx) = with(&[]);
        assert_eq!(plic.read(&mut cx, 0, 8), Err(BusError::Size));
        assert_eq!(plic.read(&mut cx, CONTEXT + 9 * CONTEXT_STRIDE + 4, 4), Ok(0));
        plic.write(&mut cx, ENABLE, 4, 0xFFFF_FFFF).unwrap();
        assert_eq!(plic.read(&mut cx, ENABLE, 4), Ok(0xFFFF_FFFE));
    }
}
