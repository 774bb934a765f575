//! The transmit benchmark of the AXI NIC on `drivers::axinic`: one frame size, one way of waiting, one threshold at a time.
//!
//! It repeats what was published for a Rocket board of 100 MHz: submit k frames with a tail write each, wait until the channel
//! has counted k, take them back, again. Ways of waiting: `poll` reads the DMA's status; `interrupt` spins on a word that the
//! PLIC handler counts up; `future` is a task that is polled, and looks at the status as long as it is not done.
//!
//! Every cell is measured with two softwares. `ours`: the driver as it is. `board`: the same, but every phase lasts as long as
//! it was measured to last on the board ([`software::BOARD`]), so that what is compared is DMA, MAC and wire.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare nic --mode timed --net sink");
}

#[cfg(target_os = "none")]
mod heap;
#[cfg(target_os = "none")]
mod software;
#[cfg(target_os = "none")]
mod wait;

#[cfg(target_os = "none")]
mod program {
    extern crate alloc;

    use super::software::{BOARD, OURS, Phases, Software, now, until};
    use super::wait::{self, Mode};
    use alloc::vec::Vec;
    use core::num::NonZeroU8;
    use drivers::axinic::{AxiNic, Coalesce, Config, Link};
    use drivers::dma::{DmaBuffer, DmaRegion};
    use drivers::mmio::Mmio;
    use soc_guest::{mmio, println};

    const DMA: usize = 0x6010_0000;
    const MAC: usize = 0x6014_0000;
    /// RAM behind the program, for rings and buffers.
    const REGION: usize = 0x8100_0000;
    const REGION_BYTES: usize = 1 << 20;
    const LONGEST: usize = 16_128;
    /// Frame sizes of the published tables.
    const FRAMES: [usize; 22] = [
        60, 64, 128, 256, 512, 1000, 1024, 1514, 2000, 2048, 3000, 4000, 4096, 4500, 5000, 6000, 7000, 8000, 8192,
        9000, 10_000, 16_128,
    ];
    const THRESHOLDS: core::ops::RangeInclusive<u8> = 1..=5;
    /// Frames of a cell before and while it is measured: multiples of every threshold. The first fill the memory of the MAC.
    const WARM_UP: usize = 60;
    const MEASURED: usize = 120;

    struct Bench {
        nic: AxiNic<Mmio>,
        buffers: Vec<DmaBuffer>,
    }

    impl Bench {
        fn new() -> Result<Self, drivers::axinic::Error> {
            // SAFETY: the board's two windows and RAM that nothing else uses; the program owns the machine.
            let (dma, mac, mut region) = unsafe {
                (
                    Mmio::new(DMA, 0x1_0000),
                    Mmio::new(MAC, 0x4_0000),
                    DmaRegion::new(REGION, REGION as u64, REGION_BYTES),
                )
            };
            let config = Config {
                mac_address: [2, 0, 0, 0, 0, 1],
                rx_descriptors: 2,
                tx_descriptors: 16,
                rx_interrupt: Coalesce::EACH,
            };
            let mut nic = AxiNic::new(dma, mac, &mut region, config)?;
            while nic.link()? == Link::Down {}
            nic.tx_jumbo(LONGEST);
            let buffers = (0..*THRESHOLDS.end()).filter_map(|_| region.carve(LONGEST, 64)).collect();
            Ok(Self { nic, buffers })
        }

        /// Submits `k` frames of `bytes`, waits for all of them and takes them back.
        fn batch(&mut self, mode: Mode, k: usize, bytes: usize, software: &Software) -> Phases {
            let start = now();
            let mut submitted = start;
            for _ in 0..k {
                let from = now();
                let Some(buffer) = self.buffers.pop() else { fail("a buffer is missing") };
                if self.nic.tx_provide(buffer, bytes).is_err() {
                    fail("the driver refuses a frame");
                }
                until(from + software.submit());
                self.nic.tx_publish();
                submitted = now();
                until(submitted + software.bookkeeping(mode));
            }
            wait::completed(mode, &mut self.nic);
            until(now() + software.notice(mode));
            let seen = now();
            while let Some(buffer) = self.nic.tx_return() {
                self.buffers.push(buffer);
            }
            until(seen + software.recycle(mode, k as u64));
            let end = now();
            until(end + software.around);
            Phases { submit: submitted - start, wait: seen - submitted, recycle: end - seen, all: now() - start }
        }

        fn cell(&mut self, mode: Mode, k: u8, bytes: usize, software: &Software) -> Phases {
            let packets = NonZeroU8::new(k).unwrap_or(NonZeroU8::MIN);
            self.nic.tx_coalesce(Coalesce { packets, delay: 0 });
            self.nic.tx_notify(mode == Mode::Interrupt);
            let k = usize::from(k);
            for _ in 0..WARM_UP / k {
                self.batch(mode, k, bytes, software);
            }
            let mut total = Phases::default();
            for _ in 0..MEASURED / k {
                total.add(self.batch(mode, k, bytes, software));
            }
            total
        }
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
        let mut bench = match Bench::new() {
            Ok(bench) => bench,
            Err(error) => {
                println!("{error}");
                mmio::exit(1)
            }
        };
        wait::set_up();
        let mut board = BOARD;
        for mode in Mode::ALL {
            let alone = bench.cell(mode, 1, FRAMES[0], &OURS);
            board.know(mode, alone.wait / MEASURED as u64);
        }
        for (name, software) in [("board", &board), ("ours", &OURS)] {
            for mode in Mode::ALL {
                let thresholds = if mode == Mode::Poll { 1..=1 } else { THRESHOLDS };
                for (k, bytes) in thresholds.flat_map(|k| FRAMES.map(|bytes| (k, bytes))) {
                    let Phases { submit, wait, recycle, all } = bench.cell(mode, k, bytes, software);
                    println!(
                        "@{{\"software\":\"{name}\",\"mode\":\"{}\",\"threshold\":{k},\"frame_bytes\":{bytes},\"packets\":{MEASURED},\
                         \"submit\":{submit},\"wait\":{wait},\"recycle\":{recycle},\"cycles\":{all}}}",
                        mode.name()
                    );
                }
            }
        }
        mmio::exit(0);
    }
}
