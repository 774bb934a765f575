//! smoltcp's sockets: each in a set of its own, found by hash, polled only when there is reason to.
//!
//! smoltcp offers a segment to every socket of the set it is given, and lets every socket of the set try to send. With one set for all, each segment
//! costs time for each connection. So here every socket has a set to itself, a *slot*: a received segment is looked up by its
//! addresses and offered to one slot, and only slots that something happened to, the *due* ones, are let send.
//!
//! What a slot is used for is the business of [`crate::socket`], which gives it a role `T`; a slot without one is free.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashMap;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Duration;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Address, Ipv4Packet, TCP_HEADER_LEN, TcpPacket,
};

use crate::config::{KEEP_ALIVE_SECONDS, PEER_TIMEOUT_SECONDS, SOCKET_BUFFER};

/// Names a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotId(usize);

/// What makes a connection to our address one and the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The peer's address.
    pub address: Ipv4Address,
    /// The peer's port.
    pub port: u16,
    /// Our port.
    pub local_port: u16,
}

impl Flow {
    /// Whose segment a frame holds. `None` if it holds none; smoltcp checks the rest.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let frame = EthernetFrame::new_checked(frame).ok()?;
        if frame.ethertype() != EthernetProtocol::Ipv4 {
            return None;
        }
        let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
        if packet.next_header() != IpProtocol::Tcp || packet.payload().len() < TCP_HEADER_LEN {
            return None;
        }
        // Long enough for the fixed header, which holds the ports.
        let segment = TcpPacket::new_unchecked(packet.payload());
        Some(Self { address: packet.src_addr(), port: segment.src_port(), local_port: segment.dst_port() })
    }
}

struct Slot<T> {
    set: SocketSet<'static>,
    handle: SocketHandle,
    /// The flow under which it is found.
    flow: Option<Flow>,
    role: Option<T>,
    due: bool,
}

/// All slots.
pub struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<SlotId>,
    limit: usize,
    flows: HashMap<Flow, SlotId>,
    due: VecDeque<SlotId>,
    /// What a frame for nobody is offered to.
    nobody: SocketSet<'static>,
}

impl<T: Copy> Slots<T> {
    /// At most `limit` slots, each made when first needed.
    pub fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            limit,
            flows: HashMap::new(),
            due: VecDeque::new(),
            nobody: SocketSet::new(Vec::new()),
        }
    }

    /// Takes a free slot for `role`; its socket is closed. `None` if the limit is reached.
    pub fn take(&mut self, role: T) -> Option<SlotId> {
        let id = self.free.pop().or_else(|| self.make())?;
        self.slots[id.0].role = Some(role);
        Some(id)
    }

    /// What the slot is used for.
    pub fn role(&self, id: SlotId) -> Option<T> {
        self.slots[id.0].role
    }

    /// Uses a taken slot for something else.
    pub fn set_role(&mut self, id: SlotId, role: T) {
        self.slots[id.0].role = Some(role);
    }

    fn make(&mut self) -> Option<SlotId> {
        if self.slots.len() >= self.limit {
            return None;
        }
        let buffer = || SocketBuffer::new(vec![0; SOCKET_BUFFER]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_keep_alive(Some(Duration::from_secs(KEEP_ALIVE_SECONDS)));
        socket.set_timeout(Some(Duration::from_secs(PEER_TIMEOUT_SECONDS)));
        // Our clients send whole requests and replies; to hold back the last segment only delays them.
        socket.set_nagle_enabled(false);
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        self.slots.push(Slot { set, handle, flow: None, role: None, due: false });
        Some(SlotId(self.slots.len() - 1))
    }

    /// Gives a slot back. Its socket is closed and has nothing more to say.
    pub fn give_back(&mut self, id: SlotId) {
        self.set_flow(id, None);
        self.slots[id.0].role = None;
        self.free.push(id);
    }

    /// The slot's socket.
    pub fn socket(&mut self, id: SlotId) -> &mut Socket<'static> {
        let slot = &mut self.slots[id.0];
        slot.set.get_mut(slot.handle)
    }

    /// The set to offer a frame to, or to let send: that of the slot, or one without sockets.
    pub fn set(&mut self, id: Option<SlotId>) -> &mut SocketSet<'static> {
        match id {
            Some(id) => &mut self.slots[id.0].set,
            None => &mut self.nobody,
        }
    }

    /// The slot of a flow.
    pub fn find(&self, flow: &Flow) -> Option<SlotId> {
        self.flows.get(flow).copied()
    }

    /// Looks whether the slot's socket has got or lost a peer, and files it accordingly. Returns whether it has one.
    pub fn refile(&mut self, id: SlotId) -> bool {
        let socket = self.socket(id);
        let flow = match (socket.remote_endpoint(), socket.local_endpoint()) {
            (Some(remote), Some(local)) => {
                let IpAddress::Ipv4(address) = remote.addr;
                Some(Flow { address, port: remote.port, local_port: local.port })
            }
            _ => None,
        };
        self.set_flow(id, flow);
        flow.is_some()
    }

    fn set_flow(&mut self, id: SlotId, flow: Option<Flow>) {
        let old = core::mem::replace(&mut self.slots[id.0].flow, flow);
        if old == flow {
            return;
        }
        if let Some(old) = old
            && self.flows.get(&old) == Some(&id)
        {
            self.flows.remove(&old);
        }
        if let Some(flow) = flow {
            self.flows.insert(flow, id);
        }
    }

    /// The slot's socket may have something to send.
    pub fn mark_due(&mut self, id: SlotId) {
        if !core::mem::replace(&mut self.slots[id.0].due, true) {
            self.due.push_back(id);
        }
    }

    /// Every socket may have something to send: time has passed.
    pub fn mark_all_due(&mut self) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.role.is_some() && !core::mem::replace(&mut slot.due, true) {
                self.due.push_back(SlotId(index));
            }
        }
    }

    /// The slot that has been due longest; it is not due any more.
    pub fn next_due(&mut self) -> Option<SlotId> {
        let id = self.due.pop_front()?;
        self.slots[id.0].due = false;
        Some(id)
    }

    /// Whether any slot is due.
    pub fn any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The sets of all slots in use.
    pub fn sets_in_use(&self) -> impl Iterator<Item = &SocketSet<'static>> {
        self.slots.iter().filter(|slot| slot.role.is_some()).map(|slot| &slot.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, IPv4 without options, TCP: only what the look-up reads is filled in.
    fn segment() -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 20];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&40u16.to_be_bytes());
        frame[23] = 6;
        frame[26..30].copy_from_slice(&[10, 0, 2, 2]);
        frame[34..36].copy_from_slice(&40_000u16.to_be_bytes());
        frame[36..38].copy_from_slice(&7u16.to_be_bytes());
        frame
    }

    #[test]
    fn a_segment_tells_its_flow() {
        let expected = Flow { address: Ipv4Address::new(10, 0, 2, 2), port: 40_000, local_port: 7 };
        assert_eq!(Flow::of(&segment()), Some(expected));
    }

    #[test]
    fn what_is_no_whole_tcp_segment_has_no_flow() {
        let whole = segment();
        for length in 0..whole.len() {
            assert_eq!(Flow::of(&whole[..length]), None, "{length} bytes");
        }
        for (offset, value) in [(12, 0x86), (14, 0x44), (14, 0x4F), (16, 0xFF), (23, 17)] {
            let mut frame = whole.clone();
            frame[offset] = value;
            assert_eq!(Flow::of(&frame), None, "byte {offset}");
        }
    }

    #[test]
    fn slots_are_made_up_to_the_limit_and_used_again() {
        let mut slots = Slots::new(2);
        let (a, b) = (slots.take(()).unwrap(), slots.take(()).unwrap());
        assert_ne!(a, b);
        assert_eq!(slots.take(()), None);
        slots.give_back(a);
        assert_eq!(slots.sets_in_use().count(), 1);
        assert_eq!(slots.take(()), Some(a));
    }

    #[test]
    fn a_slot_is_due_once_however_often_it_is_marked() {
        let mut slots = Slots::new(2);
        let (a, b) = (slots.take(()).unwrap(), slots.take(()).unwrap());
        slots.mark_due(b);
        slots.mark_due(b);
        slots.mark_all_due();
        assert_eq!((slots.next_due(), slots.next_due(), slots.next_due()), (Some(b), Some(a), None));
        slots.mark_due(b);
        assert_eq!(slots.next_due(), Some(b));
    }
}
