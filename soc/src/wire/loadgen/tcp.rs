//! A TCP connection of the generator.
//!
//! ```text
//!             open            established           the phase says so         both FINs seen
//!   Waiting ────────▶ Opening ────────────▶ Open ────────────────▶ Closing ────────────────▶ Done
//!      ▲   RST: again  │                      │                       │
//!      └───────────────┘                      └── time-out, reset, ───┴──▶ Done, with an error
//!                                                 superfluous bytes
//! ```

use std::collections::VecDeque;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;

use super::config::{LoadGenConfig, Operation, REPLY_XOR, request_content, stream_byte};
use super::flow::Flow;
use super::tally::Tally;
use crate::time::SimTime;
use crate::wire::stack::Stack;

/// Pause before a refused connection attempt is repeated.
const RETRY: SimTime = SimTime::from_us(1000);
/// Smallest and largest socket buffer, each direction.
const BUFFER_BYTES: core::ops::RangeInclusive<usize> = 8 << 10..=64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting { until: SimTime },
    Opening,
    Open,
    Closing,
    Done,
}

/// A request that has been started.
struct Request {
    started: SimTime,
    /// What is left to put into the socket ([`Operation::Call`], [`Operation::Read`]).
    unsent: Vec<u8>,
    /// The reply that must come, from its next byte on ([`Operation::Call`]).
    expected: Vec<u8>,
    /// Position in the stream of the peer at which the request is fully acknowledged ([`Operation::Read`]).
    end: u64,
    wrong: bool,
}

/// A connection and what is under way on it.
pub(super) struct TcpConnection {
    phase: usize,
    index: usize,
    local_port: u16,
    handle: SocketHandle,
    state: State,
    /// When the present state or request has taken too long.
    deadline: SimTime,
    /// Earliest start of the next request.
    ready_at: SimTime,
    /// Requests started so far, which numbers their contents.
    requests: u64,
    /// Under way, oldest first; more than one only in [`Operation::Read`].
    under_way: VecDeque<Request>,
    /// Requests answered in full.
    answered: u64,
    /// Bytes put into the socket so far.
    sent: u64,
    /// Bytes of the guest's stream seen so far ([`Operation::Write`]).
    received: u64,
    /// Arrival of the message before the one under way, or the begin of work ([`Operation::Write`]).
    message_start: SimTime,
    message_wrong: bool,
}

impl TcpConnection {
    /// A connection that opens at its first [`Self::step`].
    pub(super) fn new(
        host: &mut Stack,
        config: &LoadGenConfig,
        phase: usize,
        index: usize,
        local_port: u16,
        now: SimTime,
    ) -> Self {
        let bytes = (4 * config.size as usize).clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end());
        let buffer = || tcp::SocketBuffer::new(vec![0; bytes]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        // A request must not wait for the acknowledgement of the one before.
        socket.set_nagle_enabled(false);
        Self {
            phase,
            index,
            local_port,
            handle: host.sockets.add(socket),
            state: State::Waiting { until: now },
            deadline: now + config.timeout,
            ready_at: SimTime::ZERO,
            requests: 0,
            under_way: VecDeque::new(),
            answered: 0,
            sent: 0,
            received: 0,
            message_start: now,
            message_wrong: false,
        }
    }
}

impl Flow for TcpConnection {
    fn ready(&self) -> bool {
        !matches!(self.state, State::Waiting { .. } | State::Opening)
    }

    fn quiet(&self) -> bool {
        self.under_way.is_empty()
    }

    fn closing(&self) -> bool {
        self.state == State::Closing
    }

    fn done(&self) -> bool {
        self.state == State::Done
    }

    fn answered(&self) -> u64 {
        self.answered
    }

    fn wake(&self, operation: Operation, work_left: bool) -> Option<SimTime> {
        match self.state {
            State::Waiting { until } => Some(until),
            State::Opening | State::Closing => Some(self.deadline),
            State::Open if !self.quiet() => Some(self.deadline),
            State::Open if !work_left => None,
            State::Open if operation == Operation::Write => Some(self.deadline),
            State::Open => Some(self.ready_at),
            State::Done => None,
        }
    }

    fn step(&mut self, host: &mut Stack, config: &LoadGenConfig, tally: &mut Tally, now: SimTime) -> bool {
        match self.state {
            State::Waiting { until } if now >= until => self.open(host, config),
            State::Opening => self.await_open(host, config, tally, now),
            State::Open => self.talk(host, config, tally, now),
            State::Closing => self.await_close(host, config, tally, now),
            State::Waiting { .. } | State::Done => false,
        }
    }

    fn close(&mut self, host: &mut Stack, config: &LoadGenConfig, now: SimTime) {
        if self.state == State::Open {
            let socket = host.sockets.get_mut::<tcp::Socket>(self.handle);
            // The guest's FIN is acknowledged at once, so that the guest is not kept waiting for a delayed acknowledgement.
            socket.set_ack_delay(None);
            socket.close();
            self.state = State::Closing;
            self.deadline = now + config.timeout;
        }
    }

    fn remove(&self, host: &mut Stack) {
        host.sockets.remove(self.handle);
    }
}

impl TcpConnection {
    fn open(&mut self, host: &mut Stack, config: &LoadGenConfig) -> bool {
        let socket = host.sockets.get_mut::<tcp::Socket>(self.handle);
        socket
            .connect(host.interface.context(), config.server, self.local_port)
            .expect("a closed socket, a checked server address and a local port that is not 0");
        self.state = State::Opening;
        true
    }

    fn await_open(&mut self, host: &mut Stack, config: &LoadGenConfig, tally: &mut Tally, now: SimTime) -> bool {
        let socket = host.sockets.get_mut::<tcp::Socket>(self.handle);
        match socket.state() {
            tcp::State::SynSent if now >= self.deadline => self.fail(host, tally),
            tcp::State::SynSent => false,
            tcp::State::Closed if now >= self.deadline => self.fail(host, tally),
            tcp::State::Closed => {
                tally.refused();
                self.state = State::Waiting { until: now + RETRY };
                false
            }
            _ => {
                self.state = State::Open;
                self.deadline = now + config.timeout;
                true
            }
        }
    }

    fn await_close(&mut self, host: &mut Stack, config: &LoadGenConfig, tally: &mut Tally, now: SimTime) -> bool {
        let socket = host.sockets.get_mut::<tcp::Socket>(self.handle);
        let mut drained = 0;
        while socket.can_recv() {
            drained += socket.recv(|bytes| (bytes.len(), bytes.len())).unwrap_or(0);
        }
        if drained > 0 && config.operation != Operation::Write {
            return self.fail(host, tally);
        }
        match socket.state() {
            tcp::State::Closed | tcp::State::TimeWait => {
                self.state = State::Done;
                false
            }
            _ if now >= self.deadline => self.fail(host, tally),
            _ => drained > 0,
        }
    }

    fn talk(&mut self, host: &mut Stack, config: &LoadGenConfig, tally: &mut Tally, now: SimTime) -> bool {
        let socket = host.sockets.get_mut::<tcp::Socket>(self.handle);
        if self.message_start < tally.released_at() {
            self.message_start = tally.released_at();
            self.deadline = self.message_start + config.timeout;
        }
        let received = match config.operation {
            Operation::Call => self.take_replies(socket, config, tally, now),
            Operation::Read => self.take_acknowledgements(socket, config, tally, now),
            Operation::Write => self.take_stream(socket, config, tally, now),
        };
        let waiting = !self.quiet() || config.operation == Operation::Write && tally.work_left();
        let late = waiting && now >= self.deadline;
        // Judged after the data, which may have come together with the FIN.
        if received.is_err() || socket.state() != tcp::State::Established || late {
            return self.fail(host, tally);
        }
        let started = config.operation != Operation::Write && self.start_requests(socket, config, tally, now);
        let sent = self.push_unsent(socket);
        started || sent || received == Ok(true)
    }

    /// [`Operation::Call`]: compares what arrives with the reply under way. Returns whether anything came; the error is bytes
    /// that nobody asked for.
    fn take_replies(
        &mut self,
        socket: &mut tcp::Socket,
        config: &LoadGenConfig,
        tally: &mut Tally,
        now: SimTime,
    ) -> Result<bool, ()> {
        let mut any = false;
        while socket.can_recv() {
            let Some(request) = self.under_way.front_mut() else { return Err(()) };
            let taken = socket.recv(|bytes| {
                let count = bytes.len().min(request.expected.len());
                request.wrong |= bytes[..count] != request.expected[..count];
                (count, count)
            });
            request.expected.drain(..taken.unwrap_or(0));
            any = true;
            if request.expected.is_empty() {
                tally.finished(now, request.started, !request.wrong);
                self.under_way.pop_front();
                self.answered += 1;
                self.ready_at = now + config.think;
                self.deadline = self.ready_at + config.timeout;
            }
        }
        Ok(any)
    }

    /// [`Operation::Read`]: a request is done when all its bytes are acknowledged.
    fn take_acknowledgements(
        &mut self,
        socket: &mut tcp::Socket,
        config: &LoadGenConfig,
        tally: &mut Tally,
        now: SimTime,
    ) -> Result<bool, ()> {
        if socket.can_recv() {
            return Err(());
        }
        let acknowledged = self.sent - socket.send_queue() as u64;
        let mut any = false;
        while let Some(request) = self.under_way.front()
            && request.end <= acknowledged
        {
            tally.finished(now, request.started, true);
            self.under_way.pop_front();
            self.answered += 1;
            self.ready_at = now + config.think;
            self.deadline = self.ready_at + config.timeout;
            any = true;
        }
        Ok(any)
    }

    /// [`Operation::Write`]: checks the guest's stream; each `size` bytes count as one request.
    fn take_stream(
        &mut self,
        socket: &mut tcp::Socket,
        config: &LoadGenConfig,
        tally: &mut Tally,
        now: SimTime,
    ) -> Result<bool, ()> {
        let mut any = false;
        while socket.can_recv() && tally.work_left() {
            let rest = u64::from(config.size) - self.received % u64::from(config.size);
            let position = self.received;
            let wrong = &mut self.message_wrong;
            let taken = socket.recv(|bytes| {
                let count = (bytes.len() as u64).min(rest) as usize;
                *wrong |= bytes[..count].iter().zip(position..).any(|(&byte, at)| byte != stream_byte(at));
                (count, count)
            });
            self.received += taken.unwrap_or(0) as u64;
            any = true;
            if self.received.is_multiple_of(u64::from(config.size)) {
                tally.start();
                tally.finished(now, self.message_start, !self.message_wrong);
                self.message_wrong = false;
                self.answered += 1;
                self.message_start = now;
                self.deadline = now + config.timeout;
            }
        }
        Ok(any)
    }

    /// Starts what may be started: one request at a time for calls, as many as the socket takes for reads.
    fn start_requests(
        &mut self,
        socket: &mut tcp::Socket,
        config: &LoadGenConfig,
        tally: &mut Tally,
        now: SimTime,
    ) -> bool {
        let mut any = false;
        while tally.work_left() && now >= self.ready_at {
            let room = match config.operation {
                Operation::Call => self.under_way.is_empty(),
                Operation::Read => socket.can_send() && self.under_way.back().is_none_or(|last| last.unsent.is_empty()),
                Operation::Write => false,
            };
            if !room {
                break;
            }
            tally.start();
            let mut unsent = vec![0; config.size as usize];
            request_content(config.seed, self.phase, self.index, self.requests, &mut unsent);
            let expected = match config.operation {
                Operation::Call => unsent.iter().map(|byte| byte ^ REPLY_XOR).collect(),
                Operation::Read | Operation::Write => Vec::new(),
            };
            self.requests += 1;
            if self.under_way.is_empty() {
                self.deadline = now + config.timeout;
            }
            let end = self.requests * u64::from(config.size);
            self.under_way.push_back(Request { started: now, unsent, expected, end, wrong: false });
            self.push_unsent(socket);
            any = true;
        }
        any
    }

    /// Puts the rest of the newest request into the socket, as far as it takes it.
    fn push_unsent(&mut self, socket: &mut tcp::Socket) -> bool {
        let Some(request) = self.under_way.back_mut() else { return false };
        if request.unsent.is_empty() || !socket.can_send() {
            return false;
        }
        let count = socket.send_slice(&request.unsent).unwrap_or(0);
        request.unsent.drain(..count);
        self.sent += count as u64;
        count > 0
    }

    /// Ends the connection with an error; the requests under way are lost.
    fn fail(&mut self, host: &mut Stack, tally: &mut Tally) -> bool {
        host.sockets.get_mut::<tcp::Socket>(self.handle).abort();
        tally.broken(self.under_way.len() as u64);
        self.under_way.clear();
        self.state = State::Done;
        true
    }
}
