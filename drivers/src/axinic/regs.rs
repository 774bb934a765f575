//! Registers and descriptor words of the AXI DMA (PG021, scatter-gather mode) and the AXI Ethernet subsystem (PG138), spelled as
//! in the product guides. Only what the driver uses.

/// AXI DMA, PG021 "Register Space". The two channels have the same registers at two bases.
pub mod dma {
    /// Base of the memory-to-stream (transmit) channel.
    pub const MM2S: usize = 0x00;
    /// Base of the stream-to-memory (receive) channel.
    pub const S2MM: usize = 0x30;

    /// Control, relative to the channel's base.
    pub const DMACR: usize = 0x00;
    /// Status.
    pub const DMASR: usize = 0x04;
    /// First descriptor; writable while the channel is halted.
    pub const CURDESC: usize = 0x08;
    /// Last valid descriptor; the write starts the engine.
    pub const TAILDESC: usize = 0x10;

    /// DMACR: run.
    pub const CR_RS: u32 = 1 << 0;
    /// DMACR: soft reset of both channels and of the attached MAC; clears itself.
    pub const CR_RESET: u32 = 1 << 2;
    /// DMACR: interrupt when the packet counter reaches the threshold.
    pub const CR_IOC_IRQ_EN: u32 = 1 << 12;
    /// DMACR: interrupt when the delay timer expires.
    pub const CR_DLY_IRQ_EN: u32 = 1 << 13;
    /// DMACR: interrupt on error.
    pub const CR_ERR_IRQ_EN: u32 = 1 << 14;
    /// DMACR: everything but IRQThreshold and IRQDelay.
    pub const CR_BITS_BELOW_THRESHOLD: u32 = (1 << CR_IRQ_THRESHOLD_SHIFT) - 1;
    /// DMACR: position of IRQThreshold, 8 bits, 1..=255.
    pub const CR_IRQ_THRESHOLD_SHIFT: u32 = 16;
    /// DMACR: position of IRQDelay, 8 bits, 0 = off.
    pub const CR_IRQ_DELAY_SHIFT: u32 = 24;

    /// DMASR: DMAIntErr, DMASlvErr, DMADecErr, SGIntErr, SGSlvErr, SGDecErr.
    pub const SR_ERRORS: u32 = 0x0000_0770;
    /// DMASR: IOC_Irq, Dly_Irq; write 1 to clear.
    pub const SR_PACKET_IRQS: u32 = 3 << 12;
}

/// Buffer descriptor, PG021 "Scatter Gather Descriptor": byte offsets of its words and their bits.
pub mod bd {
    /// Size and alignment of a descriptor.
    pub const SIZE: usize = 64;
    /// Physical address of the next descriptor.
    pub const NXTDESC: usize = 0x00;
    /// Physical address of the buffer.
    pub const BUFFER_ADDRESS: usize = 0x08;
    /// Length and, for transmit, packet boundaries.
    pub const CONTROL: usize = 0x18;
    /// Written by the device when done.
    pub const STATUS: usize = 0x1C;

    /// CONTROL: last descriptor of a packet (TXEOF).
    pub const CONTROL_EOF: u32 = 1 << 26;
    /// CONTROL: first descriptor of a packet (TXSOF).
    pub const CONTROL_SOF: u32 = 1 << 27;
    /// STATUS: transferred bytes.
    pub const STATUS_LENGTH: u32 = 0x03FF_FFFF;
    /// STATUS: last descriptor of a packet (RXEOF).
    pub const STATUS_EOF: u32 = 1 << 26;
    /// STATUS: first descriptor of a packet (RXSOF).
    pub const STATUS_SOF: u32 = 1 << 27;
    /// STATUS: DMAIntErr, DMASlvErr, DMADecErr.
    pub const STATUS_ERRORS: u32 = 7 << 28;
    /// STATUS: the descriptor belongs to software again.
    pub const STATUS_CMPLT: u32 = 1 << 31;
}

/// AXI Ethernet, PG138 "Register Space".
pub mod mac {
    /// Reset and address filter.
    pub const RAF: usize = 0x000;
    /// Interrupt status, write 1 to clear.
    pub const IS: usize = 0x00C;
    /// Interrupt enable.
    pub const IE: usize = 0x014;
    /// Receive configuration 1.
    pub const RCW1: usize = 0x404;
    /// Transmit configuration.
    pub const TC: usize = 0x408;
    /// Flow control.
    pub const FCC: usize = 0x40C;
    /// Speed.
    pub const EMMC: usize = 0x410;
    /// MDIO configuration.
    pub const MDIO_MC: usize = 0x500;
    /// MDIO control.
    pub const MDIO_MCR: usize = 0x504;
    /// MDIO write data.
    pub const MDIO_MWD: usize = 0x508;
    /// MDIO read data.
    pub const MDIO_MRD: usize = 0x50C;
    /// Station address, bytes 3..0, the first byte on the wire lowest.
    pub const UAW0: usize = 0x700;
    /// Station address, bytes 5 and 4.
    pub const UAW1: usize = 0x704;
    /// Frame filter control.
    pub const FMI: usize = 0x708;

    /// IS: MgtRdy; no other register is valid before it.
    pub const IS_MGT_RDY: u32 = 1 << 7;
    /// IS: PhyRstCmplt.
    pub const IS_PHY_RST_CMPLT: u32 = 1 << 8;

    /// RCW1 and TC: enable. All other bits clear: 1518-byte frames, MAC makes and strips padding and FCS, full duplex.
    pub const ENABLE: u32 = 1 << 28;
    /// TC: frames of any length that fits the MAC's memory.
    pub const JUMBO: u32 = 1 << 30;
    /// EMMC: speed field.
    pub const EMMC_SPEED: u32 = 3 << 30;

    /// MC: MDIO enable.
    pub const MC_ENABLE: u32 = 1 << 6;
    /// MC: divisor; f_MDC = f_host / (2 * (1 + divisor)) must not exceed 2.5 MHz. 19 for the 100 MHz host clock of our boards.
    pub const MC_DIVISOR: u32 = 19;
    /// MCR: interface ready.
    pub const MCR_READY: u32 = 1 << 7;
    /// MCR: start the access.
    pub const MCR_INITIATE: u32 = 1 << 11;
    /// MCR: operation read.
    pub const MCR_READ: u32 = 2 << 14;
    /// MCR: operation write.
    pub const MCR_WRITE: u32 = 1 << 14;
    /// MCR: position of the register number.
    pub const MCR_REGISTER_SHIFT: u32 = 16;
    /// MCR: position of the PHY address.
    pub const MCR_PHY_SHIFT: u32 = 24;
}

/// PHY registers, IEEE 802.3 clause 22.
pub mod phy {
    /// Basic mode control.
    pub const BMCR: u32 = 0;
    /// Basic mode status. Link is latched low: the second read gives the present state.
    pub const BMSR: u32 = 1;
    /// Identifier, upper half.
    pub const ID1: u32 = 2;
    /// Our advertisement.
    pub const ANAR: u32 = 4;
    /// The partner's abilities.
    pub const ANLPAR: u32 = 5;
    /// Our 1000BASE-T advertisement.
    pub const GBCR: u32 = 9;
    /// The partner's 1000BASE-T abilities, two bits above ours.
    pub const GBSR: u32 = 10;

    /// BMCR: autonegotiation on, and restart it.
    pub const BMCR_RESTART: u16 = 1 << 12 | 1 << 9;
    /// BMSR: link up.
    pub const BMSR_LINK: u16 = 1 << 2;
    /// BMSR: autonegotiation complete.
    pub const BMSR_NEGOTIATED: u16 = 1 << 5;
    /// BMSR: extended status, so registers 9 and 10 exist.
    pub const BMSR_EXTENDED: u16 = 1 << 8;
    /// GBCR: 1000BASE-T full duplex.
    pub const GB_FULL: u16 = 1 << 9;
    /// ANAR, ANLPAR: 100BASE-TX full duplex.
    pub const AN_100_FULL: u16 = 1 << 8;
    /// ANAR, ANLPAR: 10BASE-T full duplex.
    pub const AN_10_FULL: u16 = 1 << 6;
}
