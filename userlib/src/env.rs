//! The environment of a program: what it is called, what it was given, where that is.
//!
//! It is a flattened device tree. The image builder writes it from the manifest, the root task completes it with what only the
//! machine knows (register sizes, interrupts, time base) and maps it read-only. Cells are big endian; `address size` are 64 bits each.
//!
//! ```text
//! / { program = "echo-server"; hart = <0>; threads = <1>; heap = <address size>; reply-slots = <first count>;
//!     timebase-frequency = <10000000>; harts = <2>; user-interrupts;              // from the machine; the last only where it has them
//!     args { connections = "8"; };
//!     channels { net { index = <0>; role = "client"; transport = "async"; entries = <128>; vector = <0>;
//!                      peer = <16>; peer-hart = <1>; ring = <address size>; arena = <address size>; }; };
//!     devices { device@0 { compatible = "..."; reg = <address size>; irq-slots = <18 19>; irq-bits = <63 62>;
//!                          ... };  };                                             // and the properties of the machine's node
//!     dma { reg = <address size>; frames = <first count>; };
//!     untyped { slot = <20>; bits = <20>; };
//!     spaces { client = <21>; };
//!     supervises { client { slot = <22>; }; };
//!     syscall-ring { reg = <address size>; bit = <1>; }; };
//! ```
//!
//! [`Env::new`] reads every node once, so that the accessors cannot meet a malformed one afterwards.

use crate::cap::{CNode, CPtr, Endpoint, Frame, IrqHandler, Notification, Tcb, Untyped, VSpace};
use crate::tree::{self, Malformed, number, text};
use core::fmt;
use core::str::FromStr;
use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property};

/// The environment of the running program.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    tree: Fdt<'static>,
    name: &'static str,
    hart: usize,
    threads: usize,
    harts: usize,
    timebase_hz: u64,
    user_interrupts: bool,
    heap: Region,
    reply_slots: Slots,
}

/// An environment that cannot be used: builder, root task and program disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvError {
    /// Not a flattened device tree.
    NotATree,
    /// This property is missing or has a wrong form.
    Property(&'static str),
}

/// A range of addresses of this program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub address: usize,
    /// Bytes.
    pub size: usize,
}

/// A range of slots in the program's CNode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// First slot.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// Which end of a channel the program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It asks.
    Client,
    /// It answers.
    Server,
}

/// How a channel carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Shared rings, woken by user interrupts or signals.
    Async {
        /// The bit of the own doorbell that the peer rings.
        vector: u32,
        /// The peer's doorbell, badged with the bit that stands for this channel there.
        peer: Notification,
        /// The hart of the peer.
        peer_hart: usize,
        /// Ring entries each way, a power of two.
        entries: usize,
        /// Request ring, reply ring and doze words.
        ring: Region,
    },
    /// The server's endpoint. A client calls `endpoint`; a server receives the badge `index + 1` on it.
    Sync {
        /// The client's capability to call, or the server's to receive.
        endpoint: Endpoint,
    },
}

/// One end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Name in the manifest.
    pub name: &'static str,
    /// Number of the channel in its system.
    pub index: usize,
    /// This program's end.
    pub role: Role,
    /// How it carries messages.
    pub transport: Transport,
    /// Data buffers, mapped in both programs.
    pub arena: Region,
}

/// A device that the program drives.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    node: FdtNode<'static>,
    /// The compatible string by which the manifest names it.
    pub compatible: &'static str,
    /// Its registers.
    pub registers: Region,
}

/// One interrupt of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// To acknowledge it.
    pub handler: IrqHandler,
    /// The bit of the doorbell that it sets.
    pub bit: u32,
}

/// Physically contiguous memory for devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dma {
    /// Where it is mapped.
    pub region: Region,
    /// Its 2 MiB frames in order; `frame(0).physical_address()` is the start of all of it.
    pub frames: Slots,
}

/// Memory that the program makes objects of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntypedMemory {
    /// The capability.
    pub untyped: Untyped,
    /// log2 of its bytes.
    pub bits: u8,
}

/// A program that another supervises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supervised {
    /// Name in the manifest.
    pub name: &'static str,
    /// Its thread 0.
    pub tcb: Tcb,
    /// Its CSpace; slots are addressed by number ([`CNode::slot`]).
    pub cnode: CNode,
    /// The first of two free slots of the supervisor, for what it takes out of the CSpace.
    pub spare: u64,
}

/// The system-call ring of thread 0 (`abi::syscall_ring`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyscallRing {
    /// Where its page is mapped.
    pub region: Region,
    /// The bit of the doorbell that is set when another hart has worked on it.
    pub bit: u32,
}

impl Dma {
    /// Frame `index`.
    pub fn frame(&self, index: u64) -> Frame {
        Frame(CPtr(self.frames.first + index))
    }
}

impl Device {
    /// A property of the device's node in the machine's device tree, such as `local-mac-address`.
    pub fn property(&self, name: &str) -> Option<&'static [u8]> {
        self.node.property(name)?.value_as().ok()
    }

    /// Its interrupts, in the order of the machine's device tree.
    pub fn interrupts(&self) -> impl Iterator<Item = Interrupt> {
        tree::numbers(&self.node, "irq-slots")
            .zip(tree::numbers(&self.node, "irq-bits"))
            .map(|(slot, bit)| Interrupt { handler: IrqHandler(CPtr(slot.into())), bit })
    }
}

impl Env {
    /// Reads and checks an environment.
    ///
    /// # Errors
    /// If the tree or any of its nodes has not the form that the head comment shows.
    pub fn new(data: &'static [u8]) -> Result<Self, EnvError> {
        let tree = Fdt::new(data).map_err(|_| EnvError::NotATree)?;
        let root = tree.root();
        let env = Self {
            tree,
            name: text(&root, "program")?,
            hart: number(&root, "hart")?,
            threads: number(&root, "threads")?,
            harts: number(&root, "harts")?,
            timebase_hz: number(&root, "timebase-frequency")?,
            user_interrupts: tree::flag(&root, "user-interrupts"),
            heap: region(&root, "heap")?,
            reply_slots: slots(&root, "reply-slots")?,
        };
        env.nodes("channels").try_for_each(|node| channel(&node).map(drop))?;
        env.nodes("devices").try_for_each(|node| device(&node).map(drop))?;
        tree.find_node("/dma").map(|node| dma(&node)).transpose()?;
        tree.find_node("/untyped").map(|node| untyped(&node)).transpose()?;
        tree.find_node("/syscall-ring").map(|node| syscall_ring(&node)).transpose()?;
        Ok(env)
    }

    /// Name of the program in the manifest.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Hart that the program's threads run on.
    pub fn hart(&self) -> usize {
        self.hart
    }

    /// Threads of the program.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Harts of the machine that the kernel runs on.
    pub fn harts(&self) -> usize {
        self.harts
    }

    /// Rate of [`crate::time::ticks`].
    pub fn timebase_hz(&self) -> u64 {
        self.timebase_hz
    }

    /// Whether the doorbell of asynchronous channels takes user interrupts: the machine has a UINTC, a channel from another hart or
    /// a device reaches it, and the root task has bound it to thread 0 and set its sender table.
    pub fn user_interrupts(&self) -> bool {
        self.user_interrupts
    }

    /// The heap.
    pub fn heap(&self) -> Region {
        self.heap
    }

    /// Empty slots: for saved reply capabilities, or whatever the program makes.
    pub fn reply_slots(&self) -> Slots {
        self.reply_slots
    }

    /// The argument `key` of the manifest.
    pub fn arg(&self, key: &str) -> Option<&'static str> {
        self.tree.find_node("/args")?.property(key)?.value_as().ok()
    }

    /// The argument `key` as a value, or `default` if the manifest has none.
    ///
    /// # Panics
    /// If the manifest gives something that is no such value: the program cannot do what it is asked to.
    pub fn arg_or<T: FromStr>(&self, key: &str, default: T) -> T {
        match self.arg(key) {
            None => default,
            Some(word) => match word.parse() {
                Ok(value) => value,
                Err(_) => panic!("argument {key} = \"{word}\" is not a valid {}", core::any::type_name::<T>()),
            },
        }
    }

    /// The ends of channels that the program holds, by name.
    pub fn channels(&self) -> impl Iterator<Item = Channel> {
        self.nodes("channels").filter_map(|node| channel(&node).ok())
    }

    /// The channel of this name.
    pub fn channel(&self, name: &str) -> Option<Channel> {
        self.channels().find(|channel| channel.name == name)
    }

    /// The devices that the program drives, in the order of the manifest.
    pub fn devices(&self) -> impl Iterator<Item = Device> {
        self.nodes("devices").filter_map(|node| device(&node).ok().flatten())
    }

    /// The device of this compatible string.
    pub fn device(&self, compatible: &str) -> Option<Device> {
        self.devices().find(|device| device.compatible == compatible)
    }

    /// Memory for devices.
    pub fn dma(&self) -> Option<Dma> {
        dma(&self.tree.find_node("/dma")?).ok()
    }

    /// Memory to make objects of.
    pub fn untyped(&self) -> Option<UntypedMemory> {
        untyped(&self.tree.find_node("/untyped")?).ok()
    }

    /// The programs that this one supervises.
    pub fn supervised(&self) -> impl Iterator<Item = Supervised> {
        let programs = self.tree.find_node("/supervises");
        programs.into_iter().flat_map(|programs| programs.children()).filter_map(|program| {
            let slot: u64 = number::<u32>(&program, "slot").ok()?.into();
            let (tcb, cnode) = (Tcb(CPtr(slot)), CNode(CPtr(slot + 1)));
            Some(Supervised { name: program.name(), tcb, cnode, spare: slot + 2 })
        })
    }

    /// The address space of another program, which this one manages.
    pub fn space(&self, program: &str) -> Option<VSpace> {
        let slot: u32 = self.tree.find_node("/spaces")?.property(program)?.value_as().ok()?;
        Some(VSpace(CPtr(slot.into())))
    }

    /// The system-call ring of thread 0.
    pub fn syscall_ring(&self) -> Option<SyscallRing> {
        syscall_ring(&self.tree.find_node("/syscall-ring")?).ok()
    }

    fn nodes(&self, group: &str) -> impl Iterator<Item = FdtNode<'static>> + use<> {
        self.tree.root().child(group).into_iter().flat_map(|group| group.children())
    }
}

fn channel(node: &FdtNode<'static>) -> Result<Channel, EnvError> {
    let role = match text(node, "role")? {
        "client" => Role::Client,
        "server" => Role::Server,
        _ => return Err(EnvError::Property("role")),
    };
    let peer = CPtr(number::<u32>(node, "peer")?.into());
    let transport = match text(node, "transport")? {
        "async" => Transport::Async {
            vector: number(node, "vector")?,
            peer: Notification(peer),
            peer_hart: number(node, "peer-hart")?,
            entries: number(node, "entries")?,
            ring: region(node, "ring")?,
        },
        "sync" => Transport::Sync { endpoint: Endpoint(peer) },
        _ => return Err(EnvError::Property("transport")),
    };
    Ok(Channel { name: node.name(), index: number(node, "index")?, role, transport, arena: region(node, "arena")? })
}

/// `None`: the machine has no such device, and the program can do without.
fn device(node: &FdtNode<'static>) -> Result<Option<Device>, EnvError> {
    if tree::flag(node, "optional") && !tree::flag(node, "reg") {
        return Ok(None);
    }
    Ok(Some(Device { node: *node, compatible: text(node, "compatible")?, registers: region(node, "reg")? }))
}

fn dma(node: &FdtNode<'static>) -> Result<Dma, EnvError> {
    Ok(Dma { region: region(node, "reg")?, frames: slots(node, "frames")? })
}

fn untyped(node: &FdtNode<'static>) -> Result<UntypedMemory, EnvError> {
    let slot: u32 = number(node, "slot")?;
    Ok(UntypedMemory { untyped: Untyped(CPtr(slot.into())), bits: number(node, "bits")? })
}

fn syscall_ring(node: &FdtNode<'static>) -> Result<SyscallRing, EnvError> {
    Ok(SyscallRing { region: region(node, "reg")?, bit: number(node, "bit")? })
}

fn region(node: &FdtNode<'static>, name: &'static str) -> Result<Region, EnvError> {
    let [address, size] = tree::pair(node, name)?;
    Ok(Region { address: address as usize, size: size as usize })
}

fn slots(node: &FdtNode<'static>, name: &'static str) -> Result<Slots, EnvError> {
    let [first, count] = tree::pair(node, name)?;
    Ok(Slots { first, count })
}

impl From<Malformed> for EnvError {
    fn from(Malformed(name): Malformed) -> Self {
        Self::Property(name)
    }
}

impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATree => write!(f, "the environment is not a device tree"),
            Self::Property(name) => write!(f, "the environment has no valid `{name}`"),
        }
    }
}

impl core::error::Error for EnvError {}
