//! Every slot and every virtual address of a system, assigned before anything runs.
//!
//! ```text
//! address space of a program                      CSpace of a program
//! 0x0001_0000  image (up to 0x0400_0000)          1..7   fixed (docs/architecture.md, section 4)
//!   0x0100_0000  constants                        16..   fault endpoints of threads 1.., peers of channels,
//!   0x0120_0000  code                                    interrupt handlers (4 per device), DMA frames,
//!   0x0140_0000  private: stack, data, heap              reply slots, untyped memory, address spaces, programs
//! 0x0400_0000  environment
//! 0x0420_0000  IPC buffers, one page each         doorbell bits
//! 0x0500_0000  stacks, a guard page below each    0 upwards    channels that reach this program, by name
//!                                                              its system-call ring
//! 0x2000_0000  rings and arenas, system-call ring 63 downwards interrupts, 4 per device
//! 0x6000_0000  heap
//! 0x7000_0000  device registers, 16 MiB each
//! 0x7800_0000  DMA memory
//! ```
//!
//! # Large pages
//!
//! Where the machine has the memory for it, the code of each program is in 2 MiB pages, and what only thread 0 of it uses is together in
//! one, the *private* page: its stack at the bottom, so that an overflow leaves the page, its data in the middle (`userlib/program.ld`), its
//! heap above. A machine without tagged TLBs loses them at every switch; a program in small pages then walked eight to ten times before
//! it had its code, data, stack and heap again. What does not fit there has a region of its own as drawn.
//!
//! # Cache sets
//!
//! Regions do not start there exactly but a little above, each and in each program elsewhere (`spread`). A cache of 64 sets of 64
//! bytes repeats every 4 KiB: with round addresses the page-table entries of all regions of all programs, and the first objects
//! of all heaps, would lie in the same few sets and drive each other out at every switch.

use crate::check;
use crate::manifest::{Channel, OnFault, OnMisbehaviour, System, Transport};
use std::collections::BTreeMap;

/// End of the addresses that an image may use.
pub const IMAGE_END: u64 = 0x0400_0000;
/// First address that an image may use.
pub const IMAGE_START: u64 = 0x1_0000;
const ENVIRONMENT: u64 = 0x0400_0000;
/// Room for an environment, with what the root task adds.
pub const ENVIRONMENT_SIZE: u64 = 64 << 10;
const IPC_BUFFERS: u64 = 0x0420_0000;
const STACKS: u64 = 0x0500_0000;
const CHANNELS: u64 = 0x2000_0000;
const CHANNELS_END: u64 = 0x6000_0000;
const HEAP: u64 = 0x6000_0000;
/// Where heaps start behind it that are too small for 2 MiB pages.
const SMALL_HEAPS: u64 = 0x0800_0000;
const DEVICES: u64 = 0x7000_0000;
const DEVICE_WINDOW: u64 = 16 << 20;
const DMA: u64 = 0x7800_0000;
/// Page size.
pub const PAGE: u64 = 4096;
/// Size of a large page.
pub const MEGA_PAGE: u64 = 2 << 20;

/// The private page of a program in large pages.
pub const PRIVATE: Range = Range { start: 0x0140_0000, size: MEGA_PAGE };
/// Where its data is, between the room for a stack and the room for a heap.
pub const PRIVATE_DATA: Range = Range { start: PRIVATE.start + (512 << 10), size: 512 << 10 };
const PRIVATE_HEAP: Range = Range { start: PRIVATE.start + (1 << 20), size: 1 << 20 };
/// Large pages of a program: its code, its private page. Larger programs are rare, and the memory is only estimated.
const LARGE: u64 = 2 * MEGA_PAGE;

/// Pages whose page-table entries fill one cache line.
const PAGES_OF_LINE: u64 = 8 * PAGE;
/// Programs after which the spread repeats.
const SPREAD: u64 = 8;

/// Addresses whose entries in the table above fill one cache line.
const TABLES_OF_LINE: u64 = 8 * MEGA_PAGE;

/// Where region `region` of program `program` (numbers from 0) starts behind a round address: so that the page-table entries of its
/// first pages, and those of the table above, have cache sets of their own. Sets 0 to 4 are those of the images' entries.
fn spread(region: u64, program: u64) -> u64 {
    let program = program % SPREAD;
    (8 + region * SPREAD + program) * PAGES_OF_LINE + program * TABLES_OF_LINE
}

/// Where the heap of program `program` starts in its first page.
fn heap_offset(program: u64) -> u64 {
    0x200 + program % 5 * 0x280
}

/// First slot that a manifest fills.
const FIRST_GRANT: u64 = 16;
/// Interrupts that a device may have.
pub const DEVICE_IRQS: u64 = 4;
const REPLY_SLOTS: u64 = 64;
/// Slots for a program that is supervised: its TCB, its CNode, two for what is taken out of its CSpace.
const SUPERVISED_SLOTS: u64 = 4;
/// Bytes of a ring entry, and of the control words before the rings (libipc's README).
const RING_ENTRY: u64 = 64;
const RING_CONTROL: u64 = 0x200;

/// A range of addresses or of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First.
    pub start: u64,
    /// How many bytes or slots.
    pub size: u64,
}

impl Range {
    /// The smallest range of whole pages that contains it.
    pub fn rounded(self, page: u64) -> Self {
        let start = self.start / page * page;
        Self { start, size: (self.start + self.size).next_multiple_of(page) - start }
    }

    /// Whether all of `other` is inside.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.start + other.size <= self.start + self.size
    }

    /// Whether the two have something in common.
    pub fn meets(self, other: Self) -> bool {
        self.start < other.start + other.size && other.start < self.start + self.size
    }
}

/// Everything about one program but its code.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramPlan {
    /// Name in the manifest.
    pub name: String,
    /// Cargo package and binary.
    pub target: (String, String),
    /// Priority.
    pub priority: u64,
    /// Hart.
    pub hart: usize,
    /// Threads.
    pub threads: usize,
    /// The system ends when all main programs have left.
    pub main: bool,
    /// What a fault does.
    pub on_fault: OnFault,
    /// Words for the program.
    pub args: BTreeMap<String, String>,
    /// Where its environment is mapped.
    pub environment: Range,
    /// Its IPC buffers, one page per thread.
    pub ipc_buffers: Range,
    /// Its code is in 2 MiB pages, and it has a private page.
    pub large_pages: bool,
    /// Lowest address of the stack of thread 0.
    pub first_stack: u64,
    /// First stack; they follow each other, each with a guard page below it, so `start` is a guard page.
    pub stacks: Range,
    /// Bytes of one stack without its guard page.
    pub stack: u64,
    /// Heap, whole pages.
    pub heap: Range,
    /// Bytes at its start that the program does not use.
    pub heap_offset: u64,
    /// Slots of the fault endpoints of threads 1 and up.
    pub fault_slots: Range,
    /// It serves synchronous channels and has an endpoint.
    pub serves: bool,
    /// Free slots for reply capabilities.
    pub reply_slots: Range,
    /// Slot of its untyped memory, and log2 of its bytes.
    pub untyped: Option<(u64, u32)>,
    /// Programs that it supervises, and the first of [`SUPERVISED_SLOTS`] for each: TCB, CNode, and free ones.
    pub supervises: Vec<(String, u64)>,
    /// Programs whose address spaces it manages, and the slots of these.
    pub spaces: Vec<(String, u64)>,
    /// Page of its system-call ring, and the bit of its doorbell that the kernel sets.
    pub syscall_ring: Option<(Range, u32)>,
    /// Devices.
    pub devices: Vec<DevicePlan>,
    /// DMA memory and the slots of its 2 MiB frames.
    pub dma: Option<(Range, Range)>,
    /// Radix of its CNode.
    pub cnode_bits: u32,
    /// User interrupts are of use: an asynchronous channel reaches its doorbell, from another hart, or devices reach it too. A
    /// thread of its own hart never runs while it does, so for that alone nobody needs to switch user-interrupt registers.
    pub user_interrupts: bool,
}

/// One device of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct DevicePlan {
    /// By which the root task finds it.
    pub compatible: String,
    /// The program starts without it on a machine that has none.
    pub optional: bool,
    /// Where its registers may be mapped.
    pub window: Range,
    /// Slots for interrupt handlers.
    pub slots: Range,
    /// Its first doorbell bit; further interrupts have the bits below.
    pub first_bit: u32,
}

/// One channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelPlan {
    /// Name in the manifest.
    pub name: String,
    /// Number.
    pub index: usize,
    /// How messages travel.
    pub transport: Transport,
    /// Ring entries each way.
    pub entries: u64,
    /// Bytes of the rings with their control words; 0 for sync.
    pub ring: u64,
    /// Bytes of the arena.
    pub arena: u64,
    /// Who may be faulted on the other's word.
    pub on_misbehaviour: OnMisbehaviour,
    /// The asking end.
    pub client: EndPlan,
    /// The answering end.
    pub server: EndPlan,
}

/// What one program has of a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct EndPlan {
    /// The program.
    pub program: String,
    /// Slot of the peer's doorbell or endpoint.
    pub peer: u64,
    /// Hart of the peer.
    pub peer_hart: usize,
    /// Bit of the own doorbell that the peer rings.
    pub vector: u32,
    /// Address of the rings.
    pub ring: u64,
    /// Address of the arena.
    pub arena: u64,
}

/// A planned system.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Programs by name.
    pub programs: Vec<ProgramPlan>,
    /// Channels by name.
    pub channels: Vec<ChannelPlan>,
}

/// Counters of what is already given away in one program.
struct Cursor {
    /// Number of the program.
    number: u64,
    slot: u64,
    channel_address: u64,
    vector: u32,
}

impl Cursor {
    fn slots(&mut self, count: u64) -> Range {
        let start = self.slot;
        self.slot += count;
        Range { start, size: count }
    }

    /// Room for a shared area, with a guard page behind it. Large areas start where 2 MiB pages can map them.
    fn area(&mut self, size: u64) -> u64 {
        if size == 0 {
            return 0;
        }
        let align = if size >= MEGA_PAGE { MEGA_PAGE } else { PAGE };
        let address = self.channel_address.next_multiple_of(align);
        self.channel_address = address + size + PAGE;
        address
    }
}

impl Plan {
    /// Plans a checked system.
    ///
    /// # Errors
    /// The key and the reason, if a program has more channels than doorbell bits or addresses for them.
    pub fn new(system: &System) -> Result<Self, (String, String)> {
        let mut cursors: BTreeMap<&str, Cursor> = system
            .program
            .iter()
            .zip(0..)
            .map(|((name, program), number)| {
                let slot = FIRST_GRANT + program.threads as u64 - 1;
                (name.as_str(), Cursor { number, slot, channel_address: CHANNELS + spread(0, number), vector: 0 })
            })
            .collect();
        let channels = system
            .channel
            .iter()
            .enumerate()
            .map(|(index, (name, channel))| plan_channel(system, index, (name, channel), &mut cursors))
            .collect();
        // All or none: half of the memory is for everything else.
        let large_pages = system.program.len() as u64 * LARGE <= system.machine.memory.0 / 2;
        let programs = system
            .program
            .keys()
            .map(|name| plan_program(system, name, large_pages, &mut cursors))
            .collect::<Result<_, _>>()?;
        Ok(Self { programs, channels })
    }

    /// Bytes of memory that the programs use beyond their images, without kernel objects.
    pub fn memory(&self) -> u64 {
        let programs = self.programs.iter().map(|program| {
            let threads = program.threads as u64;
            ENVIRONMENT_SIZE
                + threads * (program.stack + PAGE)
                + program.heap.size
                + if program.large_pages { LARGE } else { 0 }
                + program.dma.map_or(0, |(area, _)| area.size)
                + program.untyped.map_or(0, |(_, bits)| 1 << bits)
        });
        let channels = self.channels.iter().map(|channel| channel.ring + channel.arena);
        programs.chain(channels).sum()
    }

    /// Slots that the root task needs beyond those that it is born with: a frame per page, twice where two programs map it.
    pub fn root_slots(&self) -> u64 {
        let objects_per_program =
            64 + 4 * u64::from(self.programs.iter().map(|program| program.threads as u32).max().unwrap_or(1));
        let shared: u64 = self.channels.iter().map(|channel| channel.ring + channel.arena).sum();
        (self.memory() + shared) / PAGE + self.programs.len() as u64 * objects_per_program
    }
}

fn plan_channel(
    system: &System,
    index: usize,
    (name, channel): (&str, &Channel),
    cursors: &mut BTreeMap<&str, Cursor>,
) -> ChannelPlan {
    let is_async = channel.transport == Transport::Async;
    let ring = if is_async { (RING_CONTROL + 2 * channel.entries * RING_ENTRY).next_multiple_of(PAGE) } else { 0 };
    let mut end = |program: &str, peer: &str, peer_slot: Option<u64>| {
        // The checks have established that both programs exist.
        let cursor = cursors.get_mut(program).expect("a checked channel names known programs");
        let peer_hart = system.program[peer].hart;
        let peer = peer_slot.unwrap_or_else(|| cursor.slots(1).start);
        let vector = cursor.vector;
        cursor.vector += u32::from(is_async);
        let (ring, arena) = (cursor.area(ring), cursor.area(channel.arena.0));
        EndPlan { program: program.into(), peer, peer_hart, vector, ring, arena }
    };
    let client = end(&channel.client, &channel.server, None);
    // A server of a synchronous channel receives on its own endpoint, slot 6, whoever calls.
    let server = end(&channel.server, &channel.client, (!is_async).then_some(6));
    ChannelPlan {
        name: name.into(),
        index,
        transport: channel.transport,
        entries: if is_async { channel.entries } else { 0 },
        ring,
        arena: channel.arena.0,
        on_misbehaviour: channel.on_misbehaviour,
        client,
        server,
    }
}

fn plan_program(
    system: &System,
    name: &str,
    large_pages: bool,
    cursors: &mut BTreeMap<&str, Cursor>,
) -> Result<ProgramPlan, (String, String)> {
    let program = &system.program[name];
    let cursor = cursors.get_mut(name).expect("every program has a cursor");
    let syscall_ring = program.syscall_ring.then(|| {
        let bit = cursor.vector;
        cursor.vector += 1;
        (Range { start: cursor.area(PAGE), size: PAGE }, bit)
    });
    if cursor.channel_address > CHANNELS_END {
        return Err((
            format!("program.{name}"),
            "the rings and arenas of its channels exceed 1G; make arenas smaller".into(),
        ));
    }
    let bits_left = 64 - (program.devices.len() as u64 * DEVICE_IRQS) as u32;
    if cursor.vector > bits_left {
        let message =
            format!("{} channels and rings reach it, but only {bits_left} doorbell bits are left", cursor.vector);
        return Err((format!("program.{name}"), message));
    }
    let devices = program
        .devices
        .iter()
        .zip(0..)
        .map(|(compatible, index)| DevicePlan {
            compatible: check::device(compatible).0.into(),
            optional: check::device(compatible).1,
            window: Range { start: DEVICES + index * DEVICE_WINDOW, size: DEVICE_WINDOW },
            slots: cursor.slots(DEVICE_IRQS),
            first_bit: 63 - (index * DEVICE_IRQS) as u32,
        })
        .collect();
    let dma = (program.dma.0 > 0)
        .then(|| (Range { start: DMA, size: program.dma.0 }, cursor.slots(program.dma.0 / MEGA_PAGE)));
    let serves = check::serves_sync(system, name);
    let reply_slots = cursor.slots(program.reply_slots.unwrap_or(if serves { REPLY_SLOTS } else { 0 }));
    let untyped = (program.untyped.0 > 0).then(|| (cursor.slots(1).start, program.untyped.0.ilog2()));
    let supervises =
        program.supervises.iter().map(|other| (other.clone(), cursor.slots(SUPERVISED_SLOTS).start)).collect();
    let spaces = program.spaces.iter().map(|other| (other.clone(), cursor.slots(1).start)).collect();
    let threads = program.threads as u64;
    let heap = match program.heap.0 {
        size if large_pages && size <= PRIVATE_HEAP.size => PRIVATE_HEAP.start,
        ..MEGA_PAGE => HEAP + SMALL_HEAPS + spread(2, cursor.number),
        // A heap that 2 MiB pages can map has few entries, and they are elsewhere.
        _ => HEAP,
    };
    let stacks = STACKS + spread(1, cursor.number);
    let in_private = large_pages && PRIVATE.start + program.stack.0 <= PRIVATE_DATA.start;
    let mut rung_by =
        system.channel.values().filter(|channel| channel.transport == Transport::Async).filter_map(|channel| {
            let pair = [(&channel.client, &channel.server), (&channel.server, &channel.client)];
            pair.into_iter().find(|(own, _)| *own == name).map(|(_, peer)| system.program[peer].hart)
        });
    let user_interrupts = rung_by.any(|hart| hart != program.hart || !program.devices.is_empty());
    Ok(ProgramPlan {
        name: name.into(),
        target: (program.package.clone(), program.bin.clone()),
        priority: program.priority,
        hart: program.hart,
        threads: program.threads,
        main: program.main.unwrap_or(!check::serves(system, name)),
        on_fault: program.on_fault,
        args: program.args.clone(),
        environment: Range { start: ENVIRONMENT, size: ENVIRONMENT_SIZE },
        ipc_buffers: Range { start: IPC_BUFFERS, size: threads * PAGE },
        large_pages,
        first_stack: if in_private { PRIVATE.start } else { stacks + PAGE },
        stacks: Range { start: stacks, size: threads * (program.stack.0 + PAGE) },
        stack: program.stack.0,
        heap: Range { start: heap, size: program.heap.0 },
        heap_offset: heap_offset(cursor.number),
        fault_slots: Range { start: FIRST_GRANT, size: threads - 1 },
        serves,
        reply_slots,
        untyped,
        supervises,
        spaces,
        syscall_ring,
        devices,
        dma,
        cnode_bits: cursor.slot.next_power_of_two().ilog2().max(5),
        user_interrupts,
    })
}

const _: () = assert!(DEVICES + check::MAX_DEVICES as u64 * DEVICE_WINDOW <= DMA);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;
    use std::path::Path;

    fn plan(text: &str) -> Plan {
        let manifest = Manifest::parse("t".into(), Path::new("t.toml"), text.into()).unwrap();
        Plan::new(&manifest.system().unwrap()).unwrap()
    }

    const THREE: &str = r#"
        [program.a]
        package = "apps"
        bin = "hello"
        priority = 10
        threads = 3
        [program.b]
        package = "apps"
        bin = "hello"
        priority = 10
        [program.s]
        package = "apps"
        bin = "hello"
        priority = 10
        devices = ["x,one", "x,two"]
        dma = "4M"
        [channel.a-s]
        client = "a"
        server = "s"
        entries = 64
        arena = "8K"
        [channel.b-s]
        client = "b"
        server = "s"
        transport = "sync"
        arena = "2M"
        [channel.c-s]
        client = "b"
        server = "s"
    "#;

    #[test]
    fn vectors_count_per_receiver() {
        let plan = plan(THREE);
        let ends: Vec<_> = plan.channels.iter().map(|channel| (channel.client.vector, channel.server.vector)).collect();
        assert_eq!(ends, [(0, 0), (0, 1), (0, 1)]);
    }

    #[test]
    fn user_interrupts_are_for_other_harts_and_devices() {
        let of = |text: &str| plan(text).programs.iter().map(|program| program.user_interrupts).collect::<Vec<_>>();
        assert_eq!(of(THREE), [false, false, true]);
        assert_eq!(
            of(&THREE
                .replacen("priority = 10", "priority = 10\nhart = 1", 1)
                .replace("[program.a]", "[machine]\nharts = 2\n[program.a]")),
            [true, false, true]
        );
        assert_eq!(of(&THREE.replace("devices", "#")), [false, false, false]);
    }

    #[test]
    fn slots_and_addresses_do_not_overlap() {
        let plan = plan(THREE);
        for program in &plan.programs {
            let ends =
                plan.channels.iter().flat_map(|channel| [(channel, &channel.client), (channel, &channel.server)]);
            let mine: Vec<_> = ends.filter(|(_, end)| end.program == program.name).collect();
            let mut slots = vec![program.fault_slots, program.reply_slots];
            slots.extend(program.devices.iter().map(|device| device.slots));
            slots.extend(program.dma.map(|(_, slots)| slots));
            slots.extend(
                mine.iter()
                    .filter(|(_, end)| end.peer >= FIRST_GRANT)
                    .map(|(_, end)| Range { start: end.peer, size: 1 }),
            );
            let mut areas = vec![program.environment, program.ipc_buffers, program.stacks, program.heap];
            areas.extend(program.devices.iter().map(|device| device.window));
            areas.extend(program.dma.map(|(area, _)| area));
            areas.extend(mine.iter().map(|(channel, end)| Range { start: end.ring, size: channel.ring }));
            areas.extend(mine.iter().map(|(channel, end)| Range { start: end.arena, size: channel.arena }));
            for mut ranges in [slots, areas] {
                ranges.retain(|range| range.size > 0);
                ranges.sort_by_key(|range| range.start);
                assert!(ranges.windows(2).all(|pair| pair[0].start + pair[0].size <= pair[1].start), "{ranges:?}");
            }
            assert!(1 << program.cnode_bits > program.reply_slots.start + program.reply_slots.size - 1);
        }
    }

    #[test]
    fn programs_have_large_pages_where_the_memory_suffices() {
        let text = THREE.replace("threads = 3", "threads = 3\nstack = \"1M\"\nheap = \"2M\"");
        let more =
            ["x", "y"].map(|name| format!("[program.{name}]\npackage = \"p\"\nbin = \"b\"\npriority = 1\n")).concat();
        let at = |memory: &str| plan(&format!("[machine]\nmemory = \"{memory}\"\n{more}{text}"));
        for (memory, large) in [("40M", true), ("39M", false)] {
            let plan = at(memory);
            for program in &plan.programs {
                assert_eq!(program.large_pages, large);
                let stack = Range { start: program.first_stack, size: program.stack };
                let heap = Range { start: program.heap.start, size: program.heap.size };
                // What "a" wants is too large for its private page.
                let inside = large && program.name != "a";
                assert_eq!([PRIVATE.contains(stack), PRIVATE.contains(heap)], [inside; 2], "{}", program.name);
                assert!(![stack, heap].iter().any(|part| part.meets(PRIVATE_DATA)) && !stack.meets(heap));
            }
        }
        assert!(at("40M").memory() > at("39M").memory());
    }

    #[test]
    fn a_sync_server_receives_on_its_endpoint() {
        let plan = plan(THREE);
        assert_eq!(plan.channels[1].server.peer, 6);
        assert!(plan.programs[2].serves);
        assert_eq!(plan.programs[2].reply_slots.size, REPLY_SLOTS);
        assert_eq!(plan.programs[2].devices[1].first_bit, 59);
        assert_eq!(plan.channels[1].server.arena % MEGA_PAGE, 0);
    }
}
