//! A channel: memory that two programs share, and the two ends made from it.
//!
//! ```text
//!  0x000  client header   magic, version, entries, arena bytes     each end writes its own header when it starts
//!  0x040  server header                                            and checks the peer's at the first packet
//!  0x080  client doze word                                         one line each: written by its owner,
//!  0x0C0  server doze word                                         claimed by the peer
//!  0x100  requests taken                                           written by the server, read once per lap
//!  0x140  zero
//!  0x200  request ring    entries * 64 bytes                       client -> server
//!         reply ring      entries * 64 bytes                       server -> client
//! ```
//!
//! Zeroed memory is a channel that nobody has started; so the ends need no handshake and may start in any order.
//!
//! What the peer writes is never believed: capacity, indices, laps and the table of calls in flight are private to each end,
//! and every field taken from the memory is checked where it is read. A peer can only make its own channel useless.

use crate::arena::ArenaMemory;
use crate::bell::{Doze, DozeWord, Ring, full_fence};
use crate::entry::{Arrival, ENTRY_BYTES, Entry};
use crate::error::{OpenError, PeerMisbehaviour};
use crate::port::Peer;
use crate::ring::{Consumer, Producer};
use crate::sync::{AtomicU64, Ordering};
use core::cell::Cell;

/// "WAKELINE", the first word of a header that was written.
const MAGIC: u64 = u64::from_le_bytes(*b"WAKELINE");
/// Version of the layout on this page.
const VERSION: u64 = 1;
/// Bytes before the request ring.
pub const CONTROL_BYTES: usize = 0x200;

/// Bytes of shared memory that a channel of `entries` entries each way needs, without its arena.
pub const fn ring_bytes(entries: usize) -> usize {
    CONTROL_BYTES + 2 * entries * ENTRY_BYTES
}

/// What an end says about itself.
#[repr(C, align(64))]
struct Header {
    magic: AtomicU64,
    version: AtomicU64,
    entries: AtomicU64,
    arena: AtomicU64,
}

impl Header {
    fn new() -> Self {
        Self {
            magic: AtomicU64::new(0),
            version: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            arena: AtomicU64::new(0),
        }
    }

    fn write(&self, entries: u64, arena: u64) {
        self.version.store(VERSION, Ordering::Relaxed);
        self.entries.store(entries, Ordering::Relaxed);
        self.arena.store(arena, Ordering::Relaxed);
        self.magic.store(MAGIC, Ordering::Release);
    }

    fn check(&self, entries: u64, arena: u64) -> Result<(), PeerMisbehaviour> {
        let same = self.magic.load(Ordering::Acquire) == MAGIC
            && self.version.load(Ordering::Relaxed) == VERSION
            && self.entries.load(Ordering::Relaxed) == entries
            && self.arena.load(Ordering::Relaxed) == arena;
        if same { Ok(()) } else { Err(PeerMisbehaviour::Header) }
    }
}

/// Requests that the server has taken: what a client asks when it knows of no room in the ring any more, once per lap. The
/// server counts a request before it answers it; so a client that has seen an answer sees the count.
#[repr(C, align(64))]
pub(crate) struct Taken(AtomicU64);

impl Taken {
    #[inline] // one store
    pub(crate) fn publish(&self, taken: u64) {
        // Release: the entries up to here have been read, and may be overwritten by who acquires it.
        self.0.store(taken, Ordering::Release);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The lines before the rings.
#[repr(C)]
struct Control {
    client_header: Header,
    server_header: Header,
    client_doze: DozeWord,
    server_doze: DozeWord,
    taken: Taken,
    _zero: [Header; 3],
}

#[cfg(not(loom))] // loom's atomics are handles
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Control>() == CONTROL_BYTES);
    assert!(offset_of!(Control, server_header) == 0x40);
    assert!(offset_of!(Control, client_doze) == 0x80);
    assert!(offset_of!(Control, server_doze) == 0xC0);
    assert!(offset_of!(Control, taken) == 0x100);
};

impl Control {
    fn new() -> Self {
        Self {
            client_header: Header::new(),
            server_header: Header::new(),
            client_doze: DozeWord::new(),
            server_doze: DozeWord::new(),
            taken: Taken(AtomicU64::new(0)),
            _zero: core::array::from_fn(|_| Header::new()),
        }
    }
}

/// The shared memory of one channel.
#[derive(Clone, Copy)]
pub struct Memory {
    control: &'static Control,
    requests: &'static [Entry],
    replies: &'static [Entry],
    arena: ArenaMemory,
}

impl Memory {
    /// Largest number of entries: a cookie's slot number has 16 bits.
    pub const MAX_ENTRIES: usize = 1 << 15;

    /// The channel in `size` bytes at `ring`, with `arena_size` bytes of data area at `arena` (0 for none).
    ///
    /// # Errors
    /// If `entries` is not a power of two from 2 to [`Memory::MAX_ENTRIES`], or the memory too small or not aligned to a line.
    ///
    /// # Safety
    /// Both ranges stay mapped, readable and writable, for the rest of the program; they were zero when the channel was
    /// made, and nothing in this program accesses them but the ends made from this value. (The peer may do what it likes.)
    #[cfg(not(loom))]
    pub unsafe fn from_raw(
        ring: *mut u8,
        size: usize,
        entries: usize,
        arena: *mut u8,
        arena_size: usize,
    ) -> Result<Self, OpenError> {
        if !entries.is_power_of_two() || !(2..=Self::MAX_ENTRIES).contains(&entries) {
            return Err(OpenError::Entries);
        }
        if size < ring_bytes(entries) || !ring.addr().is_multiple_of(ENTRY_BYTES) {
            return Err(OpenError::Memory);
        }
        // SAFETY: the caller gives the range; size and alignment were checked above. `Control` and `Entry` consist of atomics
        // only, for which every bit pattern is valid and concurrent writes are defined.
        let (control, requests, replies) = unsafe {
            let first = ring.add(CONTROL_BYTES).cast::<Entry>();
            (
                &*ring.cast::<Control>(),
                core::slice::from_raw_parts(first, entries),
                core::slice::from_raw_parts(first.add(entries), entries),
            )
        };
        // SAFETY: the caller's word for the second range.
        let arena = unsafe { ArenaMemory::from_raw(arena, arena_size) }.ok_or(OpenError::Memory)?;
        Ok(Self { control, requests, replies, arena })
    }

    /// The memory of an asynchronous channel of this program's environment.
    ///
    /// # Errors
    /// If the channel is synchronous or its memory does not fit the layout.
    #[cfg(target_os = "none")]
    pub(crate) fn from_env(channel: &userlib::env::Channel) -> Result<Self, OpenError> {
        let userlib::env::Transport::Async { entries, ring, .. } = channel.transport else {
            return Err(OpenError::NoChannel);
        };
        let [ring_start, arena_start] =
            [ring.address, channel.arena.address].map(core::ptr::with_exposed_provenance_mut::<u8>);
        // SAFETY: the root task maps both ranges zeroed, readable and writable, for as long as the program lives, and hands
        // them to nobody else in this program.
        unsafe { Self::from_raw(ring_start, ring.size, entries, arena_start, channel.arena.size) }
    }

    /// A channel in memory of this program, never freed: for tests and for threads of one program.
    ///
    /// # Errors
    /// If `entries` is not a power of two from 2 to [`Memory::MAX_ENTRIES`].
    pub fn leak(entries: usize, arena_size: usize) -> Result<Self, OpenError> {
        use alloc::boxed::Box;
        if !entries.is_power_of_two() || !(2..=Self::MAX_ENTRIES).contains(&entries) {
            return Err(OpenError::Entries);
        }
        let ring = || -> &'static [Entry] { Box::leak((0..entries).map(|_| Entry::new()).collect()) };
        Ok(Self {
            control: Box::leak(Box::new(Control::new())),
            requests: ring(),
            replies: ring(),
            arena: ArenaMemory::leak(arena_size),
        })
    }

    /// The data area.
    pub fn arena(&self) -> ArenaMemory {
        self.arena
    }

    /// The request ring as raw entries: what a peer that breaks the protocol could write. For tests.
    pub fn request_entries(&self) -> &'static [Entry] {
        self.requests
    }

    /// The reply ring as raw entries: what a peer that breaks the protocol could write. For tests.
    pub fn reply_entries(&self) -> &'static [Entry] {
        self.replies
    }

    fn capacity(&self) -> u64 {
        self.requests.len() as u64
    }
}

/// Counts of one end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bells {
    /// Batches published.
    pub published: u64,
    /// Peers reached by user interrupt.
    pub interrupts: u64,
    /// Peers reached by signal.
    pub signals: u64,
}

/// One end of a channel: a ring to write, a ring to read, the bell of the peer, the own doze word.
pub(crate) struct End<R> {
    pub(crate) output: Producer,
    pub(crate) input: Consumer,
    pub(crate) taken: &'static Taken,
    own: &'static DozeWord,
    peer: &'static DozeWord,
    peer_header: &'static Header,
    arena_size: u64,
    ring: R,
    published: Cell<u64>,
    bells: Cell<Bells>,
    closed: Cell<bool>,
}

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Writes requests, reads replies.
    Client,
    /// Writes replies, reads requests.
    Server,
}

impl<R: Ring> End<R> {
    pub(crate) fn new(memory: &Memory, role: Role, ring: R) -> Self {
        let control = memory.control;
        let (output, input, own, peer, header, peer_header) = match role {
            Role::Client => (
                memory.requests,
                memory.replies,
                &control.client_doze,
                &control.server_doze,
                &control.client_header,
                &control.server_header,
            ),
            Role::Server => (
                memory.replies,
                memory.requests,
                &control.server_doze,
                &control.client_doze,
                &control.server_header,
                &control.client_header,
            ),
        };
        header.write(memory.capacity(), memory.arena.size() as u64);
        Self {
            output: Producer::new(output),
            input: Consumer::new(input),
            taken: &control.taken,
            own,
            peer,
            peer_header,
            arena_size: memory.arena.size() as u64,
            ring,
            published: Cell::new(0),
            bells: Cell::new(Bells::default()),
            closed: Cell::new(false),
        }
    }

    /// What arrived next, not yet taken; checks the peer's header before the very first.
    #[inline] // hot path
    pub(crate) fn peek(&self) -> Result<Option<Arrival<'static>>, PeerMisbehaviour> {
        let arrival = self.input.peek()?;
        if self.input.taken() == 0 && arrival.is_some() {
            self.check_header()?;
        }
        Ok(arrival)
    }

    #[cold]
    fn check_header(&self) -> Result<(), PeerMisbehaviour> {
        self.peer_header.check(self.output.capacity(), self.arena_size)
    }

    /// Tells the peer of everything pushed since the last call, if it dozes. Returns false if the peer has closed.
    #[inline] // once per round; usually nothing was pushed
    pub(crate) fn publish(&self) -> bool {
        self.published.get() == self.output.pushed() || self.publish_batch()
    }

    fn publish_batch(&self) -> bool {
        self.published.set(self.output.pushed());
        self.ring_bell()
    }

    /// Rings if the peer dozes, whatever was pushed.
    fn ring_bell(&self) -> bool {
        let mut bells = self.bells.get();
        bells.published += 1;
        full_fence(); // the pushes before, the doze word after: see `bell`
        let doze = self.peer.claim();
        match doze {
            Doze::Running | Doze::Closed => (),
            Doze::Armed => {
                bells.interrupts += 1;
                self.ring.interrupt();
            }
            Doze::Blocked => {
                bells.signals += 1;
                self.ring.signal();
            }
        }
        self.bells.set(bells);
        doze != Doze::Closed
    }

    /// Announces a doze; the caller then makes a full fence and looks again.
    #[inline] // one store
    pub(crate) fn doze(&self, doze: Doze) {
        if !self.closed.get() {
            self.own.doze(doze);
        }
    }

    /// Whether there is a packet to take or the peer has closed: the second look before a doze.
    #[inline] // polled
    pub(crate) fn is_ready(&self) -> bool {
        !self.closed.get() && (self.input.is_ready() || self.peer_closed())
    }

    #[inline] // one load
    pub(crate) fn peer_closed(&self) -> bool {
        self.peer.state() == Doze::Closed
    }

    /// Whether [`End::close`] was called.
    #[inline] // one load
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Says that this end is gone, and wakes the peer to see it. The first call counts.
    #[cold]
    pub(crate) fn close(&self) {
        if !self.closed.replace(true) {
            self.own.doze(Doze::Closed);
            self.ring_bell();
        }
    }

    pub(crate) fn bells(&self) -> Bells {
        self.bells.get()
    }
}

impl<R> Drop for End<R> {
    fn drop(&mut self) {
        // Without a bell: `close` is the polite way. The peer sees it at its next look.
        self.own.doze(Doze::Closed);
    }
}

/// The peer of a channel of this program's environment.
pub(crate) type NativePeer = Peer;
