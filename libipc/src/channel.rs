//! A channel: memory that two programs share, and the two ends made from it.
//!
//! ```text
//!  0x000  client header   magic, version, entries, arena bytes,    each end writes its own header when it starts
//!  0x040  server header   generation, opened                       and checks the peer's at the first packet
//!  0x080  client doze word                                         one line each: written by its owner,
//!  0x0C0  server doze word                                         claimed by the peer
//!  0x100  requests taken                                           written by the server, read once per lap
//!  0x140  room wanted                                             written by the client, read after one-way messages
//!  0x180  zero
//!  0x200  request ring    entries * 64 bytes                       client -> server
//!         reply ring      entries * 64 bytes                       server -> client
//! ```
//!
//! Zeroed memory is a channel that nobody has started; so the ends need no handshake and may start in any order.
//!
//! # Generations
//!
//! An end that is closed, or whose program died, may open again: the channel's *generation* goes up by one, and everything of the
//! generations before is void. An end that finds its own header written is a restarted one.
//!
//! ```text
//!    client                                                  server
//!    Open(g) ── peer closed ─> Closed                        Closed ── or its program starts again ─> Waiting(g+1)
//!    reconnect: generation = g+1, signal ──────────────────> client's generation >= own: Waiting(g+1)
//!    Asking(g+1) <────────────────────────────────────────── generation = g+1, signal
//!    both equal: the rings are nobody's
//!    zeroes them, opened = g+1, signal ────────────────────> client's opened == own: Open(g+1)
//!    server's opened == own: Open(g+1) <──────────────────── opened = g+1, signal
//! ```
//!
//! While an end is not open its doze word says Closed; so a peer that looks late does not take the new end for the old one. Zeroed
//! memory is generation 0, clean: the first start needs none of this.
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
const VERSION: u64 = 2;
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
    generation: AtomicU64,
    /// The last generation that this end has opened; the client has zeroed the rings before.
    opened: AtomicU64,
}

impl Header {
    fn new() -> Self {
        Self {
            magic: AtomicU64::new(0),
            version: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            arena: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            opened: AtomicU64::new(0),
        }
    }

    /// Writes the header of an end that starts; gives its generation.
    fn write(&self, entries: u64, arena: u64) -> u64 {
        let restarted = self.magic.load(Ordering::Relaxed) == MAGIC;
        let generation = self.generation.load(Ordering::Relaxed).wrapping_add(restarted.into());
        self.generation.store(generation, Ordering::Relaxed);
        self.describe(entries, arena);
        generation
    }

    /// Writes what does not depend on the generation.
    fn describe(&self, entries: u64, arena: u64) {
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

/// Whether the client waits for room in the request ring. One-way messages get no reply whose bell would tell it.
#[repr(C, align(64))]
pub(crate) struct RoomWanted(AtomicU64);

impl RoomWanted {
    /// The client's announcement. Follow it with [`full_fence`] and a look at [`Taken`].
    pub(crate) fn set(&self, wanted: bool) {
        self.0.store(wanted.into(), Ordering::Relaxed);
    }

    /// The server's look, after [`Taken::publish`] and [`full_fence`].
    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// Offset of the doze word of the client and of the server: what a supervisor marks [`Doze::Closed`] for a program that died.
pub const DOZE_OFFSETS: [usize; 2] = [0x80, 0xC0];

/// The lines before the rings.
#[repr(C)]
struct Control {
    client_header: Header,
    server_header: Header,
    client_doze: DozeWord,
    server_doze: DozeWord,
    taken: Taken,
    wanted: RoomWanted,
    _zero: [Header; 2],
}

#[cfg(not(loom))] // loom's atomics are handles
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Control>() == CONTROL_BYTES);
    assert!(offset_of!(Control, server_header) == 0x40);
    assert!(size_of::<Header>() == 0x40);
    assert!(offset_of!(Control, client_doze) == DOZE_OFFSETS[0]);
    assert!(offset_of!(Control, server_doze) == DOZE_OFFSETS[1]);
    assert!(offset_of!(Control, taken) == 0x100);
    assert!(offset_of!(Control, wanted) == 0x140);
    assert!(offset_of!(Header, version) == 8 && offset_of!(Header, entries) == 16 && offset_of!(Header, arena) == 24);
    assert!(offset_of!(Header, generation) == 32 && offset_of!(Header, opened) == 40);
};

impl Control {
    fn new() -> Self {
        Self {
            client_header: Header::new(),
            server_header: Header::new(),
            client_doze: DozeWord::new(),
            server_doze: DozeWord::new(),
            taken: Taken(AtomicU64::new(0)),
            wanted: RoomWanted(AtomicU64::new(0)),
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
    pub(crate) wanted: &'static RoomWanted,
    memory: Memory,
    own: &'static DozeWord,
    peer: &'static DozeWord,
    own_header: &'static Header,
    peer_header: &'static Header,
    ring: R,
    published: Cell<u64>,
    bells: Cell<Bells>,
    generation: Cell<u64>,
    /// Generation + 1 while open, 0 while not: what a request is stamped with, so that an answer of an older generation is known.
    open_as: Cell<u64>,
    /// The first generation that may be opened: the one after the last that was.
    first_free: Cell<u64>,
    /// The last generation for which this end, a client's, has zeroed the rings.
    zeroed: Cell<u64>,
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
        let generation = header.write(memory.capacity(), memory.arena.size() as u64);
        let end = Self {
            output: Producer::new(output),
            input: Consumer::new(input),
            taken: &control.taken,
            wanted: &control.wanted,
            memory: *memory,
            own,
            peer,
            own_header: header,
            peer_header,
            ring,
            published: Cell::new(0),
            bells: Cell::new(Bells::default()),
            generation: Cell::new(generation),
            open_as: Cell::new(0),
            first_free: Cell::new(generation),
            zeroed: Cell::new(0),
        };
        if generation == 0 {
            end.open();
        } else {
            // A peer that waits for us to come back.
            end.own.doze(Doze::Closed);
            end.ring.signal();
        }
        end
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
        self.peer_header.check(self.output.capacity(), self.memory.arena.size() as u64)
    }

    /// Tells the peer of everything pushed since the last call, if it dozes. Returns false if the peer has closed.
    #[inline] // once per round; usually nothing was pushed
    pub(crate) fn publish(&self) -> bool {
        self.published.get() == self.output.pushed() || self.publish_batch()
    }

    fn publish_batch(&self) -> bool {
        full_fence(); // the pushes before, the doze word after: see `bell`
        self.ring_for_batch()
    }

    /// The end of a round that leaves nothing to do, behind [`End::doze`] and a full fence: [`End::publish`] and [`End::is_ready`]. One
    /// fence serves both halves of the protocol: before it the pushes and the own doze word, after it the peer's doze word and the ring.
    #[inline(always)] // half of what a link does when one call is in flight
    pub(crate) fn settle(&self) -> bool {
        if self.published.get() != self.output.pushed() {
            self.ring_for_batch();
        }
        self.is_ready()
    }

    /// Rings for what was pushed since the last time, after a full fence.
    #[inline] // the rest of `publish_batch` and `settle`
    fn ring_for_batch(&self) -> bool {
        self.published.set(self.output.pushed());
        self.ring_bell(R::signal_at_park)
    }

    /// Rings if the peer dozes, whatever was pushed, after a full fence; `signal` is how if it is Blocked.
    #[inline] // the body of `ring_for_batch`
    fn ring_bell(&self, signal: impl Fn(&R)) -> bool {
        let mut bells = self.bells.get();
        bells.published += 1;
        let doze = self.peer.claim();
        match doze {
            Doze::Running | Doze::Closed => (),
            Doze::Armed => {
                bells.interrupts += 1;
                self.ring.interrupt();
            }
            Doze::Blocked => {
                bells.signals += 1;
                signal(&self.ring);
            }
        }
        self.bells.set(bells);
        doze != Doze::Closed
    }

    /// Announces a doze; the caller then makes a full fence and looks again.
    #[inline] // one store
    pub(crate) fn doze(&self, doze: Doze) {
        if !self.is_closed() {
            self.own.doze(doze);
        }
    }

    /// Whether there is a packet to take or the peer has closed: the second look before a doze.
    #[inline] // polled
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_closed() && (self.input.is_ready() || self.peer_closed())
    }

    #[inline] // one load
    pub(crate) fn peer_closed(&self) -> bool {
        self.peer.state() == Doze::Closed
    }

    /// Whether the end is not open.
    #[inline] // one load
    pub(crate) fn is_closed(&self) -> bool {
        self.open_as.get() == 0
    }

    /// What names this opening of the end: 0 while it is not open, another number for each generation.
    #[inline] // one load
    pub(crate) fn opening(&self) -> u64 {
        self.open_as.get()
    }

    /// The server has taken requests that get no reply: tells the client if it waits for their room.
    #[cold]
    pub(crate) fn offer_room(&self) {
        full_fence(); // `taken` before, `wanted` after; the client: `wanted` before, `taken` after
        if self.wanted.get() {
            self.ring_bell(R::signal);
        }
    }

    /// Says that this end is gone, and wakes the peer to see it. The first call counts.
    #[cold]
    pub(crate) fn close(&self) {
        if self.open_as.replace(0) != 0 {
            self.own.doze(Doze::Closed);
            full_fence(); // this before, the peer's doze word after
            self.ring_bell(R::signal);
        }
    }

    /// Closes the channel to a peer that has broken the protocol.
    #[cold]
    pub(crate) fn cut_off(&self) {
        self.close();
        self.ring.accuse();
    }

    fn open(&self) {
        let generation = self.generation.get();
        self.first_free.set(generation.wrapping_add(1));
        self.open_as.set(generation.wrapping_add(1));
        self.own.doze(Doze::Running);
    }

    /// The generation that the peer is at, and the last that it has opened. The last number there is is no generation, as none could
    /// follow it: a peer that claims to be there is taken for one that never started.
    fn peer_generations(&self) -> (u64, u64) {
        let at = self.peer_header.generation.load(Ordering::Acquire);
        if at == u64::MAX {
            return (0, 0);
        }
        // Acquire: what the peer did to the rings before it opened them comes before.
        (at, self.peer_header.opened.load(Ordering::Acquire))
    }

    /// The server's half of opening again. Returns whether it is open now.
    #[cold]
    pub(crate) fn accept_again(&self) -> bool {
        let (asked, opened) = self.peer_generations();
        if asked > self.generation.get() {
            self.restart(asked);
            self.ring.signal();
        }
        let own = self.generation.get();
        if asked != own || opened != own || own < self.first_free.get() {
            return false;
        }
        self.open();
        self.own_header.opened.store(own, Ordering::Release);
        self.ring.signal();
        true
    }

    /// Whether [`End::accept_again`] would do something.
    #[cold]
    pub(crate) fn could_accept(&self) -> bool {
        let ((asked, opened), own) = (self.peer_generations(), self.generation.get());
        asked > own || (asked == own && opened == own && own >= self.first_free.get())
    }

    /// The client's half of opening again: to be called until it returns true.
    #[cold]
    pub(crate) fn connect_again(&self) -> bool {
        if !self.is_closed() {
            return true;
        }
        let (answered, opened) = self.peer_generations();
        let wanted = self.first_free.get().max(answered);
        if self.generation.get() != wanted {
            self.own.doze(Doze::Closed);
            self.restart(wanted);
            self.ring.signal();
        }
        if answered != wanted {
            return false;
        }
        if self.zeroed.get() != wanted {
            // The server is at this generation and touches no ring before it finds it opened.
            self.memory.requests.iter().chain(self.memory.replies).for_each(Entry::clear);
            self.taken.publish(0);
            self.wanted.set(false);
            self.zeroed.set(wanted);
            self.own.doze(Doze::Running);
            // Release: all of the above comes before.
            self.own_header.opened.store(wanted, Ordering::Release);
            self.ring.signal();
        }
        if opened != wanted {
            return false;
        }
        self.open();
        true
    }

    /// Whether [`End::connect_again`], once called, would do something.
    #[cold]
    pub(crate) fn could_connect(&self) -> bool {
        let ((answered, opened), own) = (self.peer_generations(), self.generation.get());
        answered > own
            || (answered == own && own >= self.first_free.get() && (self.zeroed.get() != own || opened == own))
    }

    /// Moves to `generation`, whose rings have not been used.
    fn restart(&self, generation: u64) {
        self.generation.set(generation);
        self.output.restart();
        self.input.restart();
        self.published.set(0);
        // Again: the peer may have destroyed it, and been forgiven.
        self.own_header.describe(self.output.capacity(), self.memory.arena.size() as u64);
        // Release: nothing of the generation before is done to the rings after it.
        self.own_header.generation.store(generation, Ordering::Release);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Here;

    impl Ring for Here {
        fn interrupt(&self) {}
        fn signal(&self) {}
    }

    #[test]
    fn a_header_that_was_destroyed_is_written_again() {
        let memory = Memory::leak(2, 0).unwrap();
        let (client, server) = (End::new(&memory, Role::Client, Here), End::new(&memory, Role::Server, Here));
        for header in [client.own_header, server.own_header] {
            header.magic.store(0, Ordering::Relaxed);
            header.entries.store(u64::MAX, Ordering::Relaxed);
        }
        client.close();
        server.close();
        while !client.connect_again() {
            server.accept_again();
        }
        assert_eq!((client.check_header(), server.check_header()), (Ok(()), Ok(())));
    }

    /// An end that opened it could not say that it is open: `opening` would be 0, and the executor would admit the peer again and again.
    #[test]
    fn the_last_number_is_no_generation() {
        for (role, peer) in [(Role::Server, Role::Client), (Role::Client, Role::Server)] {
            let memory = Memory::leak(2, 0).unwrap();
            let (end, peer) = (End::new(&memory, role, Here), End::new(&memory, peer, Here));
            for generation in [u64::MAX, u64::MAX - 1] {
                end.close();
                peer.own_header.generation.store(generation, Ordering::Relaxed);
                peer.own_header.opened.store(generation, Ordering::Relaxed);
                for _ in 0..4 {
                    let _ = match role {
                        Role::Server => end.accept_again(),
                        Role::Client => end.connect_again(),
                    };
                }
                let more = if role == Role::Server { end.could_accept() } else { end.could_connect() };
                assert!(!more || !end.is_closed(), "there is always something to do");
                assert_eq!(end.is_closed(), generation == u64::MAX);
            }
        }
    }
}
