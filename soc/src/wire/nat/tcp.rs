//! TCP through the gateway: each connection is a socket of the stack and one of the host, and what one has goes to the other.
//!
//! ```text
//!   guest opens:  SYN held back ─▶ host connects (a thread, it may take long) ─┬─ done ──▶ socket listens, SYN to the stack
//!                                                                              └─ refused ▶ SYN to the stack: nobody listens, RST
//!   host opens:   accepted ──▶ socket connects to the guest; if the guest refuses, the host's connection is closed
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::{Ipv4Packet, TcpPacket};

use super::super::stack::Stack;
use super::{Forward, GATEWAY, on_host};

/// Each way of each connection.
const BUFFER_BYTES: usize = 64 << 10;
/// How long the host may take to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Openings of the guest that wait for the host, at most; later ones are dropped, and come again.
const OPENINGS: usize = 64;
/// Ports of the gateway for connections that the host opens.
const FIRST_PORT: u16 = 49_152;

/// All connections.
pub(super) struct TcpFlows {
    guest: Ipv4Addr,
    listeners: Vec<(TcpListener, u16)>,
    openings: Vec<Opening>,
    flows: Vec<Flow>,
    next_port: u16,
}

/// The guest wants to connect.
struct Opening {
    from_port: u16,
    to: SocketAddrV4,
    syn: Vec<u8>,
    host: Receiver<io::Result<TcpStream>>,
}

/// One connection.
struct Flow {
    guest: SocketHandle,
    host: TcpStream,
    /// The host has said all it has to say.
    host_ended: bool,
    /// The guest has, and the host was told.
    guest_ended: bool,
}

impl TcpFlows {
    /// Opens the forwarded ports. Errors: the host's, with the port.
    pub(super) fn new<'a>(guest: Ipv4Addr, forwards: impl Iterator<Item = &'a Forward>) -> io::Result<Self> {
        let listen = |forward: &Forward| {
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("tcp port {}: {error}", forward.host_port));
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, forward.host_port)).map_err(named)?;
            listener.set_nonblocking(true).map_err(named)?;
            Ok((listener, forward.guest_port))
        };
        let listeners = forwards.map(listen).collect::<io::Result<_>>()?;
        Ok(Self { guest, listeners, openings: Vec::new(), flows: Vec::new(), next_port: FIRST_PORT })
    }

    /// The host's ends of the forwarded ports.
    #[cfg(test)]
    pub(super) fn forwarded(&self) -> Vec<std::net::SocketAddr> {
        self.listeners.iter().filter_map(|(listener, _)| listener.local_addr().ok()).collect()
    }

    /// If `frame` opens a connection of the guest, takes care of it; the stack must not see it now.
    pub(super) fn takes_opening(&mut self, frame: &[u8], packet: &Ipv4Packet<&[u8]>) -> bool {
        let Ok(segment) = TcpPacket::new_checked(packet.payload()) else { return false };
        if !segment.syn() || segment.ack() {
            return false;
        }
        let (from_port, to) = (segment.src_port(), SocketAddrV4::new(packet.dst_addr(), segment.dst_port()));
        let known = self.openings.iter().any(|opening| (opening.from_port, opening.to) == (from_port, to));
        if known || self.openings.len() >= OPENINGS {
            return true; // asked again, or too much at once: the guest repeats it
        }
        let (sender, host) = mpsc::channel();
        let address = SocketAddrV4::new(on_host(*to.ip()), to.port()).into();
        std::thread::spawn(move || {
            // Nobody is left to hear it if the machine has ended.
            let _ = sender.send(TcpStream::connect_timeout(&address, CONNECT_WITHIN));
        });
        self.openings.push(Opening { from_port, to, syn: frame.to_vec(), host });
        true
    }

    /// Moves what can be moved.
    pub(super) fn pump(&mut self, stack: &mut Stack) {
        self.accept(stack);
        self.finish_openings(stack);
        self.flows.retain_mut(|flow| {
            let alive = flow.pump(stack.sockets.get_mut(flow.guest));
            if !alive {
                stack.sockets.remove(flow.guest);
            }
            alive
        });
    }

    fn accept(&mut self, stack: &mut Stack) {
        for (listener, guest_port) in &self.listeners {
            while let Ok((host, _)) = listener.accept() {
                let port = self.next_port;
                self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
                let mut socket = socket();
                let context = stack.interface.context();
                // Refused only for addresses and ports of zero, and a port in use; then the host's connection is closed.
                if socket.connect(context, (self.guest, *guest_port), (GATEWAY, port)).is_ok()
                    && host.set_nonblocking(true).is_ok()
                {
                    self.flows.push(Flow::new(stack.sockets.add(socket), host));
                }
            }
        }
    }

    fn finish_openings(&mut self, stack: &mut Stack) {
        let flows = &mut self.flows;
        self.openings.retain(|opening| {
            let host = match opening.host.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Ok(Ok(host)) => host.set_nonblocking(true).is_ok().then_some(host),
                Ok(Err(_)) | Err(TryRecvError::Disconnected) => None,
            };
            let mut socket = socket();
            if let Some(host) = host
                && socket.listen((*opening.to.ip(), opening.to.port())).is_ok()
            {
                flows.push(Flow::new(stack.sockets.add(socket), host));
            }
            stack.push(&opening.syn);
            false
        });
    }
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket
}

impl Flow {
    fn new(guest: SocketHandle, host: TcpStream) -> Self {
        // Without it small answers wait; a host that cannot is only slower.
        let _ = host.set_nodelay(true);
        Self { guest, host, host_ended: false, guest_ended: false }
    }

    /// Moves bytes both ways; false when both sides are done.
    fn pump(&mut self, guest: &mut Socket<'_>) -> bool {
        let established = !matches!(guest.state(), State::Listen | State::SynSent | State::SynReceived);
        while guest.can_recv() {
            // Nothing is lost by consuming what a host does not want any more.
            let moved = guest.recv(|bytes| match self.host.write(bytes) {
                Ok(count) => (count, count > 0),
                Err(error) if is_later(&error) => (0, false),
                Err(_) => (bytes.len(), true),
            });
            if moved != Ok(true) {
                break;
            }
        }
        if established && !guest.may_recv() && !guest.can_recv() && !self.guest_ended {
            self.guest_ended = true;
            // The host may have gone first.
            let _ = self.host.shutdown(Shutdown::Write);
        }
        while guest.can_send() && !self.host_ended {
            let read = guest.send(|room| match self.host.read(room) {
                Ok(count) => (count, Some(count)),
                Err(error) if is_later(&error) => (0, None),
                Err(_) => (0, Some(0)),
            });
            match read {
                Ok(Some(0)) => {
                    self.host_ended = true;
                    guest.close();
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        !matches!(guest.state(), State::Closed | State::TimeWait)
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
