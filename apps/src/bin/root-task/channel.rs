//! What two programs share: notifications or an endpoint, rings, buffers.

use crate::failure::{Failure, Result, Step};
use crate::memory::{Memory, own};
use crate::process::Process;
use crate::vspace::{Access, Area, map_new};
use dtoolkit::Node;
use dtoolkit::fdt::FdtNode;
use libipc::bell::Doze;
use libipc::channel::DOZE_OFFSETS;
use userlib::cap::{CPtr, Cap, Endpoint, Notification, Rights, Slot};
use userlib::tree;

/// One end, as the system description tells it.
struct End<'a> {
    index: usize,
    process: &'a Process,
    peer: u64,
    vector: u32,
    ring: u64,
    arena: u64,
}

/// A channel as the root task keeps it: to say for a program that has died what it cannot say itself.
pub struct Link {
    /// Name in the manifest.
    pub name: &'static str,
    /// Number in the manifest.
    pub index: u64,
    /// Client and server, by number of the program.
    ends: [usize; 2],
    /// The end that may be faulted on the other's word: 0 is the client, 1 the server.
    faultable: Option<usize>,
    transport: Transport,
}

enum Transport {
    Rings {
        /// The doorbells of client and server, with the bit of this channel.
        doorbells: [Notification; 2],
        rings: Area,
        /// Of the rings in the client.
        address: u64,
    },
    Endpoint {
        /// Where the client has the server's endpoint.
        place: Slot,
        /// The same capability with all rights.
        kept: Slot,
    },
}

/// Badge of those who call a server that has died: no program's.
pub const GONE: u64 = 1;

impl Link {
    /// The program `index` runs no more: marks its ends of rings closed and wakes the peers, whose calls then end with an error.
    pub fn bury(&self, memory: &mut Memory, index: usize) -> Result<()> {
        let Transport::Rings { doorbells, rings, address } = &self.transport else { return Ok(()) };
        for (end, peer) in [(0, 1), (1, 0)] {
            if self.ends[end] == index {
                rings.store(memory, address + DOZE_OFFSETS[end] as u64, Doze::Closed as u32)?;
                doorbells[peer].signal();
            }
        }
        Ok(())
    }

    /// The server `index` over an endpoint will never run again: its clients reach the root task instead, with the badge [`GONE`]. Who waits to
    /// be received calls again.
    pub fn divert(&self, index: usize, supervisor: Endpoint) -> Result<()> {
        let Transport::Endpoint { place, kept } = self.transport else { return Ok(()) };
        if self.ends[1] != index {
            return Ok(());
        }
        place.delete().step("taking an endpoint away")?;
        place.mint(own(supervisor.cptr().0), CALL, GONE).step("diverting a client")?;
        kept.cancel_badged_sends().step("restarting callers")
    }

    /// The program that is to be faulted because `accuser` says that the other end has broken the protocol, if the manifest wants it so.
    pub fn accused(&self, accuser: usize) -> Option<usize> {
        let end = self.faultable?;
        (self.ends[1 - end] == accuser).then_some(self.ends[end])
    }
}

/// What a client may do with an endpoint.
const CALL: Rights = Rights::WRITE.with(Rights::GRANT_REPLY);

/// Connects client and server of the channel `node`.
pub fn connect(memory: &mut Memory, processes: &[Process], node: &FdtNode<'static>) -> Result<Link> {
    let client = end(processes, node, "client")?;
    let server = end(processes, node, "server")?;
    let index = tree::number::<u64>(node, "index")?;
    let transport = match tree::text(node, "transport")? {
        "sync" => {
            let endpoint = server.process.endpoint.ok_or(Failure::Archive("endpoint of a server"))?;
            let (place, kept) = (client.process.slot(client.peer), memory.slot()?);
            for (slot, rights) in [(place, CALL), (kept, Rights::ALL)] {
                slot.mint(own(endpoint.cptr().0), rights, index + 1).step("granting an endpoint")?;
            }
            Transport::Endpoint { place, kept }
        }
        _ => {
            let mut doorbells = [Notification(CPtr::NULL); 2];
            for (doorbell, from, to) in [(1, &client, &server), (0, &server, &client)] {
                let (source, badge) = (own(to.process.doorbell.cptr().0), 1 << to.vector);
                from.process.slot(from.peer).mint(source, Rights::WRITE, badge).step("granting a doorbell")?;
                let kept = memory.slot()?;
                kept.mint(source, Rights::WRITE, badge).step("keeping a doorbell")?;
                doorbells[doorbell] = Notification(CPtr(kept.index));
            }
            let size = tree::long(node, "ring")?;
            let rings = map_new(memory, client.process.vspace, client.ring, size, Access::READ_WRITE)?;
            rings.map_again(memory, server.process.vspace, server.ring, Access::READ_WRITE)?;
            Transport::Rings { doorbells, rings, address: client.ring }
        }
    };
    share(memory, tree::long(node, "arena")?, (&client, client.arena), (&server, server.arena))?;
    let faultable = ["fault-client", "fault-server"].iter().position(|flag| tree::flag(node, flag));
    Ok(Link { name: node.name(), index, ends: [client.index, server.index], faultable, transport })
}

fn end<'a>(processes: &'a [Process], node: &FdtNode<'static>, role: &str) -> Result<End<'a>> {
    let node = node.child(role).ok_or(Failure::Archive("end of a channel"))?;
    let program = tree::text(&node, "program")?;
    let index = processes.iter().position(|process| process.name == program);
    let index = index.ok_or(Failure::Archive("program of a channel"))?;
    Ok(End {
        index,
        process: &processes[index],
        peer: tree::long(&node, "peer")?,
        vector: tree::number(&node, "vector")?,
        ring: tree::long(&node, "ring")?,
        arena: tree::long(&node, "arena")?,
    })
}

/// Maps new memory in both programs.
fn share(memory: &mut Memory, size: u64, first: (&End, u64), second: (&End, u64)) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    let frames = map_new(memory, first.0.process.vspace, first.1, size, Access::READ_WRITE)?;
    frames.map_again(memory, second.0.process.vspace, second.1, Access::READ_WRITE)
}
