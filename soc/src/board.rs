//! The one description of the board: addresses, interrupt numbers, clocks, and the device tree made from them.

use crate::config::Config;
use crate::time::SimTime;
use crate::wire::Nic;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};

/// Start of RAM; every hart starts here unless the ELF says otherwise.
pub const RAM_BASE: u64 = 0x8000_0000;
/// One core cycle: 100 MHz.
pub const CYCLE: SimTime = SimTime::from_ns(10);
/// One step of `mtime`: 10 MHz.
pub const TICK: SimTime = SimTime::from_ns(100);
/// Simulated time of core cycle `cycle`; the end of time for what lies behind it.
pub const fn at_cycle(cycle: u64) -> SimTime {
    SimTime::from_ps(cycle.saturating_mul(CYCLE.as_ps()))
}
/// Core cycles per step of `mtime`.
pub const CYCLES_PER_TICK: u64 = 10;
const TIMEBASE_HZ: u32 = 10_000_000;
const CORE_HZ: u32 = 100_000_000;

/// A block of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Physical address of the first byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

/// Test finisher.
pub const FINISHER: Window = Window { base: 0x0010_0000, size: 0x1000 };
/// Goldfish RTC.
pub const RTC: Window = Window { base: 0x0010_1000, size: 0x1000 };
/// CLINT.
pub const CLINT: Window = Window { base: 0x0200_0000, size: 0x1_0000 };
/// User-interrupt controller.
pub const UINTC: Window = Window { base: 0x0300_0000, size: crate::devices::uintc::WINDOW_BYTES };
/// PLIC.
pub const PLIC: Window = Window { base: 0x0C00_0000, size: 0x60_0000 };
/// 16550 UART.
pub const UART: Window = Window { base: 0x1000_0000, size: 0x100 };
/// AXI DMA.
pub const AXI_DMA: Window = Window { base: 0x6010_0000, size: 0x1_0000 };
/// AXI Ethernet.
pub const AXI_ETHERNET: Window = Window { base: 0x6014_0000, size: 0x4_0000 };
/// Both, as the one device that models them.
pub const AXI_NIC: Window = Window { base: AXI_DMA.base, size: crate::devices::axi_nic::WINDOW };
/// ATS-INTC. (The published board has it where this one has its UART.)
pub const ATS_INTC: Window = Window { base: 0x1100_0000, size: crate::devices::ats_intc::SIZE };
/// Cadence GEM and its management block, placed as on QEMU's `sifive_u`.
pub const GEM: Window = Window { base: 0x1009_0000, size: crate::devices::gem::WINDOW };
/// Slots for virtio devices, placed as on QEMU's `virt` board.
pub const VIRTIO_SLOTS: usize = 8;
/// Slot of the virtio network device: the one that QEMU fills first.
pub const VIRTIO_NET_SLOT: usize = 7;
/// Slots from 0 on that can hold disks.
pub const DISK_SLOTS: usize = VIRTIO_NET_SLOT;
const _: () = assert!(AXI_DMA.base + crate::devices::axi_nic::ETHERNET_OFFSET == AXI_ETHERNET.base);

/// virtio slot `slot`, less than [`VIRTIO_SLOTS`].
pub const fn virtio(slot: usize) -> Window {
    Window { base: 0x1000_1000 + 0x1000 * slot as u64, size: crate::devices::virtio::WINDOW }
}

/// PLIC source of virtio slot `slot`.
pub const fn virtio_irq(slot: usize) -> u32 {
    1 + slot as u32
}

/// PLIC source of the UART.
pub const UART_IRQ: u32 = 10;
/// PLIC source of the RTC.
pub const RTC_IRQ: u32 = 11;
/// PLIC source of the AXI Ethernet.
pub const AXI_ETHERNET_IRQ: u32 = 12;
/// PLIC source of the AXI DMA's transmit channel.
pub const AXI_DMA_MM2S_IRQ: u32 = 13;
/// PLIC source of the AXI DMA's receive channel.
pub const AXI_DMA_S2MM_IRQ: u32 = 14;
/// PLIC source of the GEM, as on QEMU's `sifive_u`.
pub const GEM_IRQ: u32 = 53;
/// Usual station address of the NIC; locally administered.
pub const MAC_ADDRESS: [u8; 6] = [0x02, 0x57, 0x4B, 0x4C, 0x00, 0x01];

const PHANDLE_PLIC: u32 = 1;
const PHANDLE_FINISHER: u32 = 2;
const PHANDLE_DMA: u32 = 3;
const PHANDLE_PHY: u32 = 4;
const PHANDLE_CLOCK: u32 = 5;
/// Interrupt controllers of the harts follow.
const PHANDLE_HART: u32 = 16;
const UART_HZ: u32 = 3_686_400;
/// Bus clock of the GEM, from which MDC is divided.
const GEM_HZ: u32 = CORE_HZ;

/// The flattened device tree of a machine; `initrd` is the range of an initial RAM disk. Its size depends on whether there is
/// one, not on where.
pub fn device_tree(config: &Config, initrd: Option<(u64, u64)>) -> Vec<u8> {
    let mut tree = DeviceTree::new();
    let root = &mut tree.root;
    for property in [
        cells("#address-cells", &[2]),
        cells("#size-cells", &[2]),
        text("compatible", &["wakeline,soc"]),
        text("model", &["Wakeline virtual SoC"]),
    ] {
        root.add_property(property);
    }
    let mut chosen = vec![
        text("stdout-path", &["/soc/serial@10000000"]),
        // Fixed: runs must not differ.
        cells("rng-seed", &[0x5761_6B65, 0x6C69_6E65, 0x736F_6320, 0x7365_6564]),
    ];
    if !config.bootargs.is_empty() {
        chosen.push(text("bootargs", &[&config.bootargs]));
    }
    if let Some((start, end)) = initrd {
        let halves = |value: u64| [(value >> 32) as u32, value as u32];
        chosen.push(cells("linux,initrd-start", &halves(start)));
        chosen.push(cells("linux,initrd-end", &halves(end)));
    }
    root.add_child(node("chosen", chosen, []));
    root.add_child(node(
        "memory@80000000",
        vec![text("device_type", &["memory"]), registers(&[Window { base: RAM_BASE, size: config.memory_bytes }])],
        [],
    ));
    root.add_child(cpus(config));
    root.add_child(soc(config));
    root.add_child(power("poweroff", "syscon-poweroff", 0x5555));
    root.add_child(power("reboot", "syscon-reboot", 0x7777));
    tree.to_dtb()
}

fn cpus(config: &Config) -> DeviceTreeNode {
    let n = config.isa.has_user_interrupts();
    let names = ["i", "m", "a", "f", "d", "c", "n", "zicntr", "zicsr", "zifencei", "sstc"];
    let there = |name: &&str| (n || *name != "n") && (config.sstc || *name != "sstc");
    let extensions: Vec<&str> = names.into_iter().filter(there).collect();
    let isa =
        format!("rv64imafdc{}_zicsr_zifencei{}", if n { "n" } else { "" }, if config.sstc { "_sstc" } else { "" });
    let cpu = |hart: usize| {
        let controller = node(
            "interrupt-controller",
            vec![
                cells("#interrupt-cells", &[1]),
                empty("interrupt-controller"),
                text("compatible", &["riscv,cpu-intc"]),
                cells("phandle", &[PHANDLE_HART + hart as u32]),
            ],
            [],
        );
        node(
            &format!("cpu@{hart:x}"),
            vec![
                text("device_type", &["cpu"]),
                cells("reg", &[hart as u32]),
                text("status", &["okay"]),
                text("compatible", &["riscv"]),
                text("riscv,isa", &[&isa]),
                text("riscv,isa-base", &["rv64i"]),
                text("riscv,isa-extensions", &extensions),
                text("mmu-type", &["riscv,sv39"]),
                cells("clock-frequency", &[CORE_HZ]),
            ],
            [controller],
        )
    };
    node(
        "cpus",
        vec![cells("#address-cells", &[1]), cells("#size-cells", &[0]), cells("timebase-frequency", &[TIMEBASE_HZ])],
        (0..config.harts).map(cpu),
    )
}

fn soc(config: &Config) -> DeviceTreeNode {
    let harts = config.harts;
    let per_hart = |bits: &[u32]| -> Vec<u32> {
        (0..harts as u32).flat_map(|hart| bits.iter().flat_map(move |&bit| [PHANDLE_HART + hart, bit])).collect()
    };
    let mut children = vec![
        node(
            &format!("test@{:x}", FINISHER.base),
            vec![
                text("compatible", &["sifive,test1", "sifive,test0", "syscon"]),
                registers(&[FINISHER]),
                cells("phandle", &[PHANDLE_FINISHER]),
            ],
            [],
        ),
        node(
            &format!("rtc@{:x}", RTC.base),
            vec![
                text("compatible", &["google,goldfish-rtc"]),
                registers(&[RTC]),
                parent(),
                cells("interrupts", &[RTC_IRQ]),
            ],
            [],
        ),
        node(
            &format!("clint@{:x}", CLINT.base),
            vec![
                text("compatible", &["sifive,clint0", "riscv,clint0"]),
                registers(&[CLINT]),
                cells("interrupts-extended", &per_hart(&[3, 7])),
            ],
            [],
        ),
        node(
            &format!("interrupt-controller@{:x}", ATS_INTC.base),
            vec![
                text("compatible", &["riscv,ats-intc0"]),
                registers(&[ATS_INTC]),
                empty("interrupt-controller"),
                cells("#interrupt-cells", &[1]),
            ],
            [],
        ),
        node(
            &format!("interrupt-controller@{:x}", PLIC.base),
            vec![
                text("compatible", &["sifive,plic-1.0.0", "riscv,plic0"]),
                registers(&[PLIC]),
                empty("interrupt-controller"),
                cells("#interrupt-cells", &[1]),
                cells("#address-cells", &[0]),
                cells("interrupts-extended", &per_hart(&[11, 9])),
                cells("riscv,ndev", &[crate::devices::plic::SOURCES]),
                cells("phandle", &[PHANDLE_PLIC]),
            ],
            [],
        ),
        node(
            &format!("serial@{:x}", UART.base),
            vec![
                text("compatible", &["ns16550a"]),
                registers(&[UART]),
                cells("clock-frequency", &[UART_HZ]),
                parent(),
                cells("interrupts", &[UART_IRQ]),
            ],
            [],
        ),
    ];
    if config.isa.has_user_interrupts() {
        let uintc = node(
            &format!("interrupt-controller@{:x}", UINTC.base),
            vec![
                text("compatible", &["riscv,uintc0"]),
                registers(&[UINTC]),
                empty("interrupt-controller"),
                cells("#interrupt-cells", &[1]),
                cells("interrupts-extended", &per_hart(&[0])),
            ],
            [],
        );
        // Where it always was: before the PLIC.
        children.insert(3, uintc);
    }
    children.extend((0..VIRTIO_SLOTS).map(virtio_slot));
    match config.net.nic {
        Nic::Axi => children.extend(axi_ethernet(&config.mac_address)),
        Nic::Virtio => {}
        Nic::Gem => children.extend(gem(&config.mac_address)),
    }
    node(
        "soc",
        vec![
            cells("#address-cells", &[2]),
            cells("#size-cells", &[2]),
            text("compatible", &["simple-bus"]),
            empty("ranges"),
        ],
        children,
    )
}

/// Linux binding `virtio/mmio.yaml`. What is in the slot is found out by reading its registers.
fn virtio_slot(slot: usize) -> DeviceTreeNode {
    let window = virtio(slot);
    node(
        &format!("virtio_mmio@{:x}", window.base),
        vec![
            text("compatible", &["virtio,mmio"]),
            registers(&[window]),
            parent(),
            cells("interrupts", &[virtio_irq(slot)]),
        ],
        [],
    )
}

/// Linux bindings `xlnx,axi-dma.yaml` (v1.00.a form) and `xlnx,axi-ethernet.yaml`.
fn axi_ethernet(mac: &[u8; 6]) -> [DeviceTreeNode; 2] {
    let build = crate::devices::axi_nic::Build::default();
    let phy = node(
        "mdio",
        vec![cells("#address-cells", &[1]), cells("#size-cells", &[0])],
        [node(
            &format!("ethernet-phy@{:x}", build.ethernet.phy_address),
            vec![
                cells("reg", &[build.ethernet.phy_address.into()]),
                cells("phandle", &[PHANDLE_PHY]),
                text("device_type", &["ethernet-phy"]),
            ],
            [],
        )],
    );
    let mac = property_bytes("local-mac-address", mac);
    [
        node(
            &format!("dma@{:x}", AXI_DMA.base),
            vec![
                text("compatible", &["xlnx,axi-dma-1.00.a"]),
                registers(&[AXI_DMA]),
                cells("#dma-cells", &[1]),
                cells("xlnx,addrwidth", &[build.dma.address_bits]),
                cells("xlnx,sg-length-width", &[build.dma.length_bits]),
                empty("xlnx,include-sg"),
                parent(),
                cells("interrupts", &[AXI_DMA_MM2S_IRQ, AXI_DMA_S2MM_IRQ]),
                cells("phandle", &[PHANDLE_DMA]),
            ],
            [],
        ),
        node(
            &format!("ethernet@{:x}", AXI_ETHERNET.base),
            vec![
                text("compatible", &["xlnx,axi-ethernet-1.00.a"]),
                text("device_type", &["network"]),
                registers(&[AXI_ETHERNET]),
                parent(),
                cells("interrupts", &[AXI_ETHERNET_IRQ]),
                cells("axistream-connected", &[PHANDLE_DMA]),
                mac,
                cells("phy-handle", &[PHANDLE_PHY]),
                text("phy-mode", &["gmii"]),
                cells("xlnx,rxmem", &[build.ethernet.rx_memory as u32]),
                cells("xlnx,txcsum", &[2]),
                cells("xlnx,rxcsum", &[2]),
            ],
            [phy],
        ),
    ]
}

/// Linux binding `cdns,macb.yaml`, the form of the FU540, whose two clocks are one here.
fn gem(mac: &[u8; 6]) -> [DeviceTreeNode; 2] {
    let window = |offset, size| Window { base: GEM.base + offset, size };
    let phy = node("ethernet-phy@0", vec![cells("reg", &[0]), cells("phandle", &[PHANDLE_PHY])], []);
    let clock = node(
        "gem-clock",
        vec![
            text("compatible", &["fixed-clock"]),
            cells("#clock-cells", &[0]),
            cells("clock-frequency", &[GEM_HZ]),
            cells("phandle", &[PHANDLE_CLOCK]),
        ],
        [],
    );
    let mac = node(
        &format!("ethernet@{:x}", GEM.base),
        vec![
            text("compatible", &["sifive,fu540-c000-gem"]),
            registers(&[
                window(0, crate::devices::gem::REGISTERS),
                window(crate::devices::gem::MANAGEMENT_OFFSET, 0x1000),
            ]),
            parent(),
            cells("interrupts", &[GEM_IRQ]),
            property_bytes("local-mac-address", mac),
            text("phy-mode", &["gmii"]),
            cells("phy-handle", &[PHANDLE_PHY]),
            text("clock-names", &["pclk", "hclk"]),
            cells("clocks", &[PHANDLE_CLOCK, PHANDLE_CLOCK]),
            cells("#address-cells", &[1]),
            cells("#size-cells", &[0]),
        ],
        [phy],
    );
    [clock, mac]
}

fn power(name: &str, compatible: &str, value: u32) -> DeviceTreeNode {
    node(
        name,
        vec![
            text("compatible", &[compatible]),
            cells("regmap", &[PHANDLE_FINISHER]),
            cells("offset", &[0]),
            cells("value", &[value]),
        ],
        [],
    )
}

fn node(
    name: &str,
    properties: Vec<DeviceTreeProperty>,
    children: impl IntoIterator<Item = DeviceTreeNode>,
) -> DeviceTreeNode {
    let mut node = DeviceTreeNode::new_unchecked(name);
    for property in properties {
        node.add_property(property);
    }
    for child in children {
        node.add_child(child);
    }
    node
}

fn property_bytes(name: &str, value: &[u8]) -> DeviceTreeProperty {
    DeviceTreeProperty::new_unchecked(name, value)
}

fn cells(name: &str, values: &[u32]) -> DeviceTreeProperty {
    property_bytes(name, &values.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<u8>>())
}

fn text(name: &str, values: &[&str]) -> DeviceTreeProperty {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.bytes().chain([0])).collect();
    property_bytes(name, &bytes)
}

fn empty(name: &str) -> DeviceTreeProperty {
    property_bytes(name, &[])
}

fn parent() -> DeviceTreeProperty {
    cells("interrupt-parent", &[PHANDLE_PLIC])
}

fn registers(windows: &[Window]) -> DeviceTreeProperty {
    let halves = |value: u64| [(value >> 32) as u32, value as u32];
    let values: Vec<u32> = windows.iter().flat_map(|w| [halves(w.base), halves(w.size)].concat()).collect();
    cells("reg", &values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtoolkit::fdt::Fdt;

    #[test]
    fn windows_do_not_overlap() {
        let mut windows = vec![FINISHER, RTC, CLINT, UINTC, PLIC, UART, AXI_DMA, AXI_ETHERNET, GEM, ATS_INTC];
        windows.extend((0..VIRTIO_SLOTS).map(virtio));
        windows.sort_by_key(|window| window.base);
        assert!(windows.windows(2).all(|pair| pair[0].base + pair[0].size <= pair[1].base));
        assert!(windows.iter().all(|window| window.base + window.size <= RAM_BASE));
    }

    #[test]
    fn device_tree_parses_back() {
        let blob = device_tree(&Config { harts: 3, bootargs: "quiet".into(), ..Config::default() }, Some((1, 2)));
        let fdt = Fdt::new(&blob).unwrap();
        let tree = DeviceTree::from_fdt(&fdt);
        for path in [
            "/chosen",
            "/cpus/cpu@2/interrupt-controller",
            "/soc/dma@60100000",
            "/soc/ethernet@60140000/mdio",
            "/soc/virtio_mmio@10008000",
        ] {
            assert!(tree.find_node(path).is_some(), "{path}");
        }
        assert!(tree.find_node("/cpus/cpu@3").is_none());
    }
}
