//! Half of a conversation over the AXI NIC: two of these, back to back, count up in turns and check what they hear.
//!
//! A frame says a number and fills itself with bytes that follow from it. Each side sends its number again every 200 us until it has heard the
//! same one, then counts on: so it does not matter who is ready first, and no number is left out. Prints when it heard each tenth.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc pair talk talk");
}

#[cfg(target_os = "none")]
#[path = "nic/heap.rs"]
mod heap;

#[cfg(target_os = "none")]
mod program {
    use core::arch::asm;
    use drivers::axinic::{AxiNic, Coalesce, Config, Link};
    use drivers::dma::DmaRegion;
    use drivers::mmio::Mmio;
    use soc_guest::{mmio, println};

    const DMA: usize = 0x6010_0000;
    const MAC: usize = 0x6014_0000;
    /// RAM behind the program, for rings and buffers.
    const REGION: usize = 0x8100_0000;
    const REGION_BYTES: usize = 1 << 20;
    const FRAME_BYTES: usize = 128;
    const BUFFER_BYTES: usize = 2048;
    const COUNT: u32 = 50;
    /// Cycles of 10 ns.
    const AGAIN: u64 = 20_000;
    /// Local experimental EtherType (IEEE 802, clause 9.2.3).
    const KIND: [u8; 2] = [0x88, 0xB5];

    fn now() -> u64 {
        let cycles;
        // SAFETY: reads a counter.
        unsafe { asm!("csrr {}, cycle", out(reg) cycles) };
        cycles
    }

    fn content(number: u32, at: usize) -> u8 {
        (number as usize * 31 + at * 7) as u8
    }

    fn fill(frame: &mut [u8], number: u32) {
        frame[..6].fill(0xFF);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        frame[12..14].copy_from_slice(&KIND);
        frame[14..18].copy_from_slice(&number.to_be_bytes());
        frame.iter_mut().enumerate().skip(18).for_each(|(at, byte)| *byte = content(number, at));
    }

    /// The number that a frame says, if it is one of ours.
    fn heard(frame: &[u8]) -> Option<u32> {
        let number = u32::from_be_bytes(frame.get(14..18)?.try_into().ok()?);
        let right = frame.iter().enumerate().skip(18).all(|(at, &byte)| byte == content(number, at));
        (frame.len() == FRAME_BYTES && frame[12..14] == KIND && right).then_some(number)
    }

    fn fail(text: &str) -> ! {
        println!("{text}");
        mmio::exit(1)
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        if hart != 0 {
            return;
        }
        // SAFETY: the board's two windows and RAM that nothing else uses; the program owns the machine.
        let (dma, mac, mut region) = unsafe {
            (Mmio::new(DMA, 0x1_0000), Mmio::new(MAC, 0x4_0000), DmaRegion::new(REGION, REGION as u64, REGION_BYTES))
        };
        let config = Config {
            mac_address: [2, 0, 0, 0, 0, 1],
            rx_descriptors: 16,
            tx_descriptors: 16,
            rx_interrupt: Coalesce::EACH,
        };
        let Ok(mut nic) = AxiNic::new(dma, mac, &mut region, config) else { fail("no NIC") };
        while matches!(nic.link(), Ok(Link::Down)) {}
        for _ in 0..8 {
            let Some(buffer) = region.carve(BUFFER_BYTES, 64) else { fail("no memory") };
            if nic.rx_provide(buffer).is_err() {
                fail("a receive buffer is refused");
            }
        }
        nic.rx_publish();
        let mut spare = region.carve(BUFFER_BYTES, 64);
        let (mut number, mut next) = (0, now());
        // The other side may still need the last number when this one has heard it.
        let mut farewells = 3;
        while farewells > 0 {
            spare = nic.tx_return().or(spare);
            if now() >= next
                && let Some(mut buffer) = spare.take()
            {
                fill(&mut buffer.bytes_mut()[..FRAME_BYTES], number);
                if nic.tx_provide(buffer, FRAME_BYTES).is_err() {
                    fail("a frame is refused");
                }
                nic.tx_publish();
                next = now() + AGAIN;
                farewells -= i32::from(number == COUNT);
            }
            while let Some(frame) = nic.rx_return() {
                match heard(frame.bytes()) {
                    // The other side is at most one ahead: it has heard this number then.
                    Some(other) if number < COUNT && (other == number || other == number + 1) => {
                        if number % 10 == 0 {
                            println!("{number} heard at {}", now());
                        }
                        number += 1;
                        next = now();
                    }
                    Some(_) => {}
                    None => fail("a frame is damaged"),
                }
                if nic.rx_provide(frame.buffer).is_err() {
                    fail("a receive buffer is refused");
                }
                nic.rx_publish();
            }
        }
        println!("done");
        mmio::exit(0);
    }
}
