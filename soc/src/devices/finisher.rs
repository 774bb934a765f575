//! Test finisher (`sifive,test1`): one 32-bit register that ends the run.

use crate::device::state_is_all;
use crate::device::{BusError, Context, Device, Exit};
use serde::{Deserialize, Serialize};

const PASS: u64 = 0x5555;
const FAIL: u64 = 0x3333;
const RESET: u64 = 0x7777;

/// The device; it has no state.
#[derive(Default, Serialize, Deserialize)]
pub struct Finisher;

impl Device for Finisher {
    fn read(&mut self, _cx: &mut dyn Context, _offset: u64, _size: u8) -> Result<u64, BusError> {
        Ok(0)
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        if size < 2 {
            return Err(BusError::Size);
        }
        if offset == 0 {
            match value & 0xFFFF {
                PASS => cx.stop(Exit::Code(0)),
                FAIL => cx.stop(Exit::Code((value >> 16) as u32 & 0xFFFF)),
                RESET => cx.stop(Exit::Reset),
                _ => {}
            }
        }
        Ok(())
    }

    state_is_all!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::Bench;

    #[test]
    fn commands() {
        for (value, exit) in [
            (0x5555, Some(Exit::Code(0))),
            (0x002A_3333, Some(Exit::Code(42))),
            (0x7777, Some(Exit::Reset)),
            (0x1234, None),
        ] {
            let mut cx = Bench::default();
            Finisher.write(&mut cx, 0, 4, value).unwrap();
            assert_eq!(cx.stopped, exit);
        }
    }
}
