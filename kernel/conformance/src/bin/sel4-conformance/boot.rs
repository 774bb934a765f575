//! What a root task finds (seL4 manual, "System Bootstrapping"): registers, capabilities, addresses, untypeds, the device tree, and the
//! counters.

use sel4_conformance::number::{ROOT_BITS, slot};

use sel4_conformance::server::Machine;
use sel4_conformance::server::boot_info::{BootInfo, EXTRA_FDT, ExtraHeader, UNTYPEDS, UntypedDesc};
use sel4_conformance::server::start::{DEBUG_CAP_IDENTIFY, counters, syscall};

const TABLE: &str = "boot";
/// End of the addresses that device untypeds cover (`PADDR_USER_DEVICE_TOP`).
const DEVICE_TOP: u64 = 1 << 39;
/// First word of a flattened device tree, as a little-endian machine reads it.
const FDT_MAGIC: u32 = 0xD00D_FEED_u32.swap_bytes();
const PAGE: u64 = 4096;

unsafe extern "C" {
    /// First byte of this image, from the linker script.
    static __image_start: u8;
}

/// Runs the rows.
pub fn run(m: &mut Machine, others: u64) {
    m.expect(TABLE, "every register but a0 is 0", (0, &[0]), (0, &[others]));
    capabilities(m);
    addresses(m);
    untypeds(m);
    let ([cycle, time], [later, later_time]) = (counters(), counters());
    m.expect(TABLE, "the cycle counter counts", (0, &[1]), (0, &[u64::from(later > cycle)]));
    m.expect(TABLE, "the time counter is readable", (0, &[1]), (0, &[u64::from(later_time >= time)]));
}

/// Numbers that DebugCapIdentify reports.
fn identify(capability: u64) -> u64 {
    syscall(DEBUG_CAP_IDENTIFY, [capability, 0, 0, 0, 0, 0])[0]
}

fn capabilities(m: &mut Machine) {
    const NULL: u64 = 0;
    const FRAME: u64 = 1;
    const UNTYPED: u64 = 2;
    const PAGE_TABLE: u64 = 3;
    let kinds = [NULL, 12, 10, PAGE_TABLE, 14, 11, 13, NULL, NULL, FRAME, FRAME, 20, NULL, NULL, NULL, NULL];
    let mut got = kinds;
    for (capability, kind) in (0..).zip(&mut got) {
        *kind = identify(capability);
    }
    m.expect(TABLE, "kinds of the fixed slots", (0, &kinds), (0, &got));
    let info = m.info;
    for (row, region, kind) in [
        ("page tables of the image", info.user_image_paging, PAGE_TABLE),
        ("frames of the extra BootInfo", info.extra_bi_pages, FRAME),
        ("frames of the image", info.user_image_frames, FRAME),
        ("untypeds", info.untyped, UNTYPED),
        ("empty slots", info.empty, NULL),
        ("no shared frames", info.shared_frames, NULL),
        ("no IO spaces", info.io_space_caps, NULL),
    ] {
        let wrong = (region.start..region.end).filter(|&capability| identify(capability) != kind).count();
        m.expect(TABLE, row, (0, &[0]), (0, &[wrong as u64]));
    }
    // One after the other from the first dynamic slot to the end of the CNode.
    let regions = [info.user_image_paging, info.extra_bi_pages, info.user_image_frames, info.untyped, info.empty];
    let mut next = slot::FIRST_DYNAMIC;
    for region in regions {
        m.expect(TABLE, "slot regions follow each other", (0, &[next]), (0, &[region.start]));
        next = region.end;
    }
    m.expect(TABLE, "the last slot is free", (0, &[1 << ROOT_BITS]), (0, &[next]));
}

fn addresses(m: &mut Machine) {
    let info = m.info;
    let words = [info.node_id, info.num_io_pt_levels, info.domain, info.cnode_size_bits];
    m.expect(TABLE, "node, IO levels, domain, radix", (0, &[0, 0, 0, ROOT_BITS]), (0, &words));
    let image = &raw const __image_start as u64;
    let end = image + (info.user_image_frames.end - info.user_image_frames.start) * PAGE;
    m.expect(TABLE, "the IPC buffer is behind the image", (0, &[end]), (0, &[info.ipc_buffer]));
    let here = core::ptr::from_ref(info) as u64;
    m.expect(TABLE, "BootInfo is behind the IPC buffer", (0, &[end + PAGE]), (0, &[here]));
    let place = (end + 2 * PAGE) as *const ExtraHeader;
    // SAFETY: the extra BootInfo is mapped behind the BootInfo page if its length is not 0; plain words.
    let (extra, magic, size) = unsafe {
        let tree = place.add(1).cast::<u32>();
        (place.read(), tree.read(), u32::from_be(tree.add(1).read()))
    };
    let got = [extra.id, u64::from(magic), extra.len, info.extra_len];
    let length = u64::from(size) + size_of::<ExtraHeader>() as u64;
    m.expect(
        TABLE,
        "the extra BootInfo is the device tree",
        (0, &[EXTRA_FDT, u64::from(FDT_MAGIC), length, length]),
        (0, &got),
    );
    let pages = info.extra_bi_pages.end - info.extra_bi_pages.start;
    let expected = length.next_power_of_two().max(PAGE) / PAGE;
    m.expect(TABLE, "pages of the extra BootInfo", (0, &[expected]), (0, &[pages]));
}

fn untypeds(m: &mut Machine) {
    let info: &'static BootInfo = m.info;
    let count = (info.untyped.end - info.untyped.start) as usize;
    let (devices, ram) = {
        let list = &info.untyped_list[..count.min(UNTYPEDS)];
        list.split_at(list.iter().take_while(|desc| desc.is_device != 0).count())
    };
    m.expect(TABLE, "device untypeds come first", (0, &[0]), (0, &[count_if(ram, |desc| desc.is_device != 0)]));
    for (row, list) in [("device untypeds", devices), ("untypeds", ram)] {
        let end = |desc: &UntypedDesc| desc.paddr + (1 << desc.size_bits);
        let wrong = count_if(list, |desc| {
            desc.size_bits < 4 || desc.size_bits > 38 || desc.paddr & (end(desc) - desc.paddr - 1) != 0
        });
        m.expect(TABLE, row, (0, &[0]), (0, &[wrong]));
        let overlap = list.windows(2).filter(|pair| end(&pair[0]) > pair[1].paddr).count();
        m.expect(TABLE, row, (0, &[0]), (0, &[overlap as u64]));
    }
    let top = devices.last().map_or(0, |desc| desc.paddr + (1 << desc.size_bits));
    m.expect(TABLE, "device untypeds reach 2^39", (0, &[DEVICE_TOP]), (0, &[top]));
    m.expect(TABLE, "there is RAM", (0, &[1]), (0, &[u64::from(!ram.is_empty())]));
    let rest = count_if(&info.untyped_list[count.min(UNTYPEDS)..], |desc| desc.paddr != 0 || desc.size_bits != 0);
    m.expect(TABLE, "the rest of the list is 0", (0, &[0]), (0, &[rest]));
}

fn count_if(list: &[UntypedDesc], test: impl Fn(&UntypedDesc) -> bool) -> u64 {
    list.iter().filter(|desc| test(desc)).count() as u64
}
