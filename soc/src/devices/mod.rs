//! The devices of the board, one file each.

pub mod ats_intc;
pub mod axi_dma;
pub mod axi_eth;
pub mod axi_nic;
pub mod clint;
pub mod finisher;
pub mod gem;
pub mod htif;
pub mod plic;
pub mod rtc;
pub mod uart;
pub mod uintc;
pub mod virtio;

mod fcs;
mod internet_checksum;
mod irq_line;
mod phy;
mod port;
mod timer;
