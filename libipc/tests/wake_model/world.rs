//! The wake protocol as a machine of small steps: one server, up to three clients, the kernel, the UINTC, and what may go wrong.
//!
//! States have the names of the code: the doze word of `bell.rs`, the stages of `executor/idle.rs`, `park` of `port/guest.rs`.
//! Each agent's stores go through a buffer of its own and reach the others later, in order; only a full fence or an atomic
//! exchange waits until it is empty. (Weaker orders of memory are the business of `tests/loom.rs`, which runs the code itself.)
//!
//! How the hazards of a wake protocol are in it:
//!
//! | hazard | here |
//! |---|---|
//! | producer preempted after it published | an agent may take its next step arbitrarily late |
//! | consumer preempted before it sleeps | the same |
//! | migration, switch-out | a look at the inbox may or may not see bits that are pending in the receiver |
//! | death | [`Event::Crash`] in any step, then [`Event::Reap`]: the supervisor closes the channels and signals the peers |
//! | duplicate and spurious interrupts | [`Event::Spurious`] |
//! | a peer that lies | [`Event::Lie`]: any doze value, any entry, at any time |

use std::fmt;

use crate::explore::Model;

/// Index of the server among the agents; client n is agent n + 1 and has channel n.
const SERVER: usize = 0;

/// What the owner of a doze word says (`bell::Doze`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Doze {
    Running,
    Armed,
    Blocked,
    Closed,
}

/// Where an agent is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// `Link::poll`: takes one entry after the other.
    Poll,
    /// `Link::publish` of a channel with a batch to tell of: `DozeWord::claim`, after the fence.
    Claim(u8),
    /// The second half of a claim that is not an exchange (broken variant).
    ClaimStore(u8, Doze),
    /// `Ring::interrupt` or `Ring::signal`, by what was claimed.
    Bell(u8, Doze),
    /// `Idle::wait`: the first look.
    Look,
    /// `Idle::sleep`: the look after doze(Armed).
    ArmedLook,
    /// `Idle::watch`: one look at the inbox.
    Watch,
    /// The look after doze(Blocked).
    BlockedLook,
    /// `GuestPort::park`: with user interrupts off, one look at the inbox and then `Wait`, which collects what is pending; or
    /// `SignalRecv`, which signals the peer that is owed it before.
    Park,
    /// Blocked in `Wait`; a signal ends it.
    Waiting,
    /// The client is gone, as it should.
    Done,
    /// It crashed.
    Dead,
}

/// A store that the others do not see yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Store {
    /// An entry with its mark, in the ring that the agent writes.
    Entry(u8),
    /// The agent's doze word of a channel.
    Doze(u8, Doze),
}

impl Step {
    /// The channel that the step is about.
    fn channel(self) -> Option<u8> {
        match self {
            Self::Claim(channel) | Self::ClaimStore(channel, _) | Self::Bell(channel, _) => Some(channel),
            _ => None,
        }
    }
}

impl Store {
    fn channel(self) -> u8 {
        match self {
            Self::Entry(channel) | Self::Doze(channel, _) => channel,
        }
    }
}

impl Agent {
    /// The same with other numbers for the channels.
    fn renumber(&mut self, number: &dyn Fn(u8) -> u8) {
        if let Step::Claim(channel) | Step::ClaimStore(channel, _) | Step::Bell(channel, _) = &mut self.step {
            *channel = number(*channel);
        }
        for Store::Entry(channel) | Store::Doze(channel, _) in &mut self.buffer {
            *channel = number(*channel);
        }
        // Client n is agent n + 1; the server keeps its number.
        self.owes = self.owes.map(|agent| if agent == 0 { 0 } else { number(agent - 1) + 1 });
    }
}

/// Pieces of the protocol that a broken variant leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// The full fence between push and claim.
    pub producer_fence: bool,
    /// The full fence between doze and the look after it.
    pub consumer_fence: bool,
    /// The look after doze(Blocked).
    pub look_again: bool,
    /// A claim is one atomic exchange.
    pub exchange: bool,
    /// A signal that finds nobody waiting is kept.
    pub latched_signal: bool,
    /// `SignalRecv` signals before it waits.
    pub signal_first: bool,
    /// The supervisor signals the peers of a program that crashed.
    pub reap_signals: bool,
}

impl Rules {
    /// The protocol.
    pub const ALL: Self = Self {
        producer_fence: true,
        consumer_fence: true,
        look_again: true,
        exchange: true,
        latched_signal: true,
        signal_first: true,
        reap_signals: true,
    };
}

/// One configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Setting {
    /// 1 to 3.
    pub clients: u8,
    /// Entries of each ring: the credits of a client.
    pub entries: u8,
    /// Calls that each client makes.
    pub calls: u8,
    /// Whether stores reach the others late.
    pub buffered: bool,
    /// Whether user interrupts reach a running thread (`Port::can_arm`).
    pub can_arm: bool,
    /// All agents share a hart: peers that are Blocked are signalled when the one who rings has nothing else to do.
    pub one_hart: bool,
    /// Bells that nobody rang.
    pub spurious: u8,
    /// Agents that may crash.
    pub crashes: u8,
    /// Things that the last client does against the protocol; 0 if it is honest.
    pub lies: u8,
    /// What is kept of the protocol.
    pub rules: Rules,
}

impl Setting {
    /// Two clients, rings of two, nothing goes wrong.
    pub const PLAIN: Self = Self {
        clients: 2,
        entries: 2,
        calls: 3,
        buffered: true,
        can_arm: true,
        one_hart: false,
        spurious: 0,
        crashes: 0,
        lies: 0,
        rules: Rules::ALL,
    };
}

/// One ring: counts of entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
struct Ring {
    pushed: u8,
    /// Of these, how many left the producer's buffer.
    visible: u8,
    taken: u8,
}

/// What both ends share, and the private state of each end. Index 0 is the client's, 1 the server's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Channel {
    doze: [Doze; 2],
    /// Written by the end of the same index.
    ring: [Ring; 2],
    /// Entries that the peer was told of.
    published: [u8; 2],
    open: [bool; 2],
    /// The next request is not one that a correct client writes.
    garbage: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Agent {
    step: Step,
    buffer: Vec<Store>,
    /// Bits in the UINTC's receiver, or in the program's inbox: wherever the handler has not been seen to bring them from.
    pending: bool,
    /// The notification is Active.
    signalled: bool,
    /// A peer of the own hart that is to be signalled at the end of the round (`Ring::signal_at_park`).
    owes: Option<u8>,
}

/// Everything.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct World {
    setting: Setting,
    agents: Vec<Agent>,
    channels: Vec<Channel>,
    spurious: u8,
    crashes: u8,
    lies: u8,
    /// The agent that crashed and was not noticed yet.
    unreaped: Option<u8>,
}

/// Something that happens.
#[derive(Clone, Copy)]
pub enum Event {
    /// An agent takes a step.
    Step(usize, Step),
    /// The oldest store in an agent's buffer reaches the others.
    Flush(usize, Store),
    /// A bell that nobody rang: by user interrupt, or by signal.
    Spurious(usize, Doze),
    /// An agent stops for ever.
    Crash(usize),
    /// The supervisor closes the channels of the agent that crashed.
    Reap(usize),
    /// The last client writes its doze word.
    LieDoze(Doze),
    /// The last client writes an entry of no meaning.
    LieEntry,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |agent: usize| if agent == SERVER { "server".to_string() } else { format!("client {agent}") };
        match *self {
            Self::Step(agent, step) => write!(f, "{}: {step:?}", name(agent)),
            Self::Flush(agent, store) => write!(f, "{}: {store:?} reaches the others", name(agent)),
            Self::Spurious(agent, doze) => write!(f, "{}: a bell out of nowhere, as for {doze:?}", name(agent)),
            Self::Crash(agent) => write!(f, "{}: crashes", name(agent)),
            Self::Reap(agent) => write!(f, "{}: its channels are closed for it", name(agent)),
            Self::LieDoze(doze) => write!(f, "the last client lies: {doze:?}"),
            Self::LieEntry => write!(f, "the last client writes garbage"),
        }
    }
}

impl World {
    /// The start: memory is zero, nobody has run.
    pub fn new(setting: Setting) -> Self {
        let agent = Agent { step: Step::Poll, buffer: Vec::new(), pending: false, signalled: false, owes: None };
        let channel = Channel {
            doze: [Doze::Running; 2],
            ring: [Ring::default(); 2],
            published: [0; 2],
            open: [true; 2],
            garbage: false,
        };
        let clients = usize::from(setting.clients);
        Self {
            setting,
            agents: vec![agent; clients + 1],
            channels: vec![channel; clients],
            spurious: setting.spurious,
            crashes: setting.crashes,
            lies: setting.lies,
            unreaped: None,
        }
    }

    fn is_liar(&self, agent: usize) -> bool {
        self.setting.lies > 0 && agent == self.agents.len() - 1
    }

    /// The channels of an agent, as numbers.
    fn links(&self, agent: usize) -> std::ops::Range<u8> {
        if agent == SERVER { 0..self.setting.clients } else { agent as u8 - 1..agent as u8 }
    }

    /// Whether `Link::poll` would find something in this channel.
    fn is_ready(&self, agent: usize, channel: u8) -> bool {
        let (side, channel) = (side(agent), &self.channels[usize::from(channel)]);
        let theirs = &channel.ring[1 - side];
        let garbage = side == 1 && channel.garbage;
        channel.open[side] && (theirs.visible > theirs.taken || garbage || channel.doze[1 - side] == Doze::Closed)
    }

    fn any_ready(&self, agent: usize) -> bool {
        self.links(agent).any(|channel| self.is_ready(agent, channel))
    }

    fn is_fenced(&self, agent: usize) -> bool {
        self.agents[agent].buffer.is_empty()
    }

    fn store(&mut self, agent: usize, store: Store) {
        if self.setting.buffered {
            self.agents[agent].buffer.push(store);
        } else {
            self.show(agent, store);
        }
    }

    /// A store reaches the others.
    fn show(&mut self, agent: usize, store: Store) {
        match store {
            Store::Entry(number) => self.channels[usize::from(number)].ring[side(agent)].visible += 1,
            Store::Doze(number, doze) => self.channels[usize::from(number)].doze[side(agent)] = doze,
        }
    }

    /// `executor::doze`: the announcement on every channel that is open.
    fn doze(&mut self, agent: usize, doze: Doze) {
        for channel in self.links(agent) {
            if self.channels[usize::from(channel)].open[side(agent)] {
                self.store(agent, Store::Doze(channel, doze));
            }
        }
    }

    /// Ends a doze.
    fn wake(&mut self, agent: usize) {
        self.doze(agent, Doze::Running);
        self.agents[agent].step = Step::Poll;
    }

    /// The kernel's `signal`.
    fn signal(&mut self, agent: usize) {
        if self.agents[agent].step == Step::Waiting {
            self.wake(agent);
        } else if self.setting.rules.latched_signal {
            self.agents[agent].signalled = true;
            self.agents[agent].pending = true; // posted to the receiver too
        }
    }

    fn ring(&mut self, agent: usize, claimed: Doze) {
        match claimed {
            Doze::Armed => self.agents[agent].pending = true,
            Doze::Blocked => self.signal(agent),
            Doze::Running | Doze::Closed => (),
        }
    }

    /// `Ring::signal_at_park`: one peer can be owed a signal; another one gets it now.
    fn signal_at_park(&mut self, agent: usize, peer: usize) {
        let before = self.agents[agent].owes.replace(peer as u8).map(usize::from);
        if let Some(other) = before.filter(|&other| other != peer) {
            self.signal(other);
        }
    }

    /// `Port::flush`: what is owed is done.
    fn flush(&mut self, agent: usize) {
        if let Some(peer) = self.agents[agent].owes.take() {
            self.signal(usize::from(peer));
        }
    }

    /// This end is done with the channel.
    fn close(&mut self, agent: usize, channel: u8) {
        self.store(agent, Store::Doze(channel, Doze::Closed));
        self.channels[usize::from(channel)].open[side(agent)] = false;
    }

    /// Takes one entry of a channel that is ready, and does what the program does with it.
    fn take(&mut self, agent: usize, number: u8) {
        let side = side(agent);
        let channel = &mut self.channels[usize::from(number)];
        let theirs = &mut channel.ring[1 - side];
        if side == 1 && channel.garbage {
            self.close(agent, number); // misbehaviour cuts this channel off, and nothing else
        } else if theirs.visible > theirs.taken {
            theirs.taken += 1;
            if side == 1 {
                channel.ring[1].pushed += 1; // the reply
                self.store(agent, Store::Entry(number));
            }
        } else {
            channel.open[side] = false; // the peer has closed
        }
    }

    /// The tasks of a client, after it took what was there: as many calls as there are credits; at the end it closes.
    fn run_tasks(&self, agent: usize) -> Vec<Self> {
        let number = agent as u8 - 1;
        let Channel { open, ring: [requests, replies], .. } = self.channels[usize::from(number)];
        let mut next = self.clone();
        if !open[0] {
            next.agents[agent].step = Step::Done; // the calls in flight have failed
            return vec![next];
        }
        if replies.taken == self.setting.calls {
            next.close(agent, number);
            next.agents[agent].step = Step::Claim(number);
            return vec![next];
        }
        let more = (self.setting.entries - (requests.pushed - replies.taken)).min(self.setting.calls - requests.pushed);
        for _ in 0..more {
            next.channels[usize::from(number)].ring[0].pushed += 1;
            next.store(agent, Store::Entry(number));
        }
        next.publish(agent)
    }

    /// Everything that an agent may do next; nothing while it waits for its buffer or for others.
    fn steps(&self, agent: usize) -> Vec<Self> {
        let rules = self.setting.rules;
        let step = self.agents[agent].step;
        let then = |change: &dyn Fn(&mut Self)| vec![self.with(|next| change(next))];
        let goes_to = |step: Step| vec![self.with(|next| next.agents[agent].step = step)];
        let owes = self.agents[agent].owes.is_some();
        let dozes = |doze: Doze, step: Step| {
            then(&|next| {
                next.doze(agent, doze);
                next.agents[agent].step = step;
            })
        };
        match step {
            Step::Poll => {
                let ready: Vec<u8> = self.links(agent).filter(|&channel| self.is_ready(agent, channel)).collect();
                match ready.as_slice() {
                    [] if agent == SERVER => self.publish(agent),
                    [] => self.run_tasks(agent),
                    ready => ready.iter().map(|&channel| self.with(|next| next.take(agent, channel))).collect(),
                }
            }
            Step::Claim(_) if rules.producer_fence && !self.is_fenced(agent) => Vec::new(),
            Step::Claim(number) => match self.channels[usize::from(number)].doze[1 - side(agent)] {
                Doze::Running | Doze::Closed => self.after_publish(agent, number),
                seen if rules.exchange => then(&|next| {
                    next.channels[usize::from(number)].doze[1 - side(agent)] = Doze::Running;
                    next.agents[agent].step = Step::Bell(number, seen);
                }),
                seen => goes_to(Step::ClaimStore(number, seen)),
            },
            Step::ClaimStore(number, seen) => then(&|next| {
                next.channels[usize::from(number)].doze[1 - side(agent)] = Doze::Running;
                next.agents[agent].step = Step::Bell(number, seen);
            }),
            Step::Bell(number, claimed) => {
                let peer = if agent == SERVER { usize::from(number) + 1 } else { SERVER };
                let is_open = self.channels[usize::from(number)].open[side(agent)];
                let rung = self.with(|next| match claimed {
                    Doze::Blocked if self.setting.one_hart && is_open => next.signal_at_park(agent, peer),
                    _ => next.ring(peer, claimed),
                });
                rung.after_publish(agent, number)
            }
            Step::Look if self.any_ready(agent) => then(&|next| {
                next.flush(agent);
                next.agents[agent].step = Step::Poll;
            }),
            Step::Look if self.setting.can_arm && !owes => dozes(Doze::Armed, Step::ArmedLook),
            Step::Look => dozes(Doze::Blocked, Step::BlockedLook),
            Step::ArmedLook | Step::BlockedLook if rules.consumer_fence && !self.is_fenced(agent) => Vec::new(),
            Step::ArmedLook if self.any_ready(agent) => dozes(Doze::Running, Step::Poll),
            Step::ArmedLook => goes_to(Step::Watch),
            Step::Watch => {
                let mut next = dozes(Doze::Blocked, Step::BlockedLook);
                if self.agents[agent].pending {
                    next.extend(then(&|next| {
                        next.agents[agent].pending = false;
                        next.wake(agent);
                    }));
                }
                next
            }
            Step::BlockedLook if rules.look_again && self.any_ready(agent) => then(&|next| {
                next.flush(agent);
                next.wake(agent);
            }),
            Step::BlockedLook => goes_to(Step::Park),
            Step::Park => then(&|next| {
                if rules.signal_first {
                    next.flush(agent);
                }
                let state = &mut next.agents[agent];
                if state.signalled || state.pending {
                    (state.signalled, state.pending) = (false, false);
                    next.wake(agent);
                } else {
                    state.step = Step::Waiting;
                }
            }),
            Step::Waiting | Step::Done | Step::Dead => Vec::new(),
        }
    }

    /// Tells of a batch that its peer was not told of; after the last one, the look around. In any order: the proof does not
    /// need the one of the code, and clients can change places ([`World::canonical`]).
    fn publish(&self, agent: usize) -> Vec<Self> {
        let side = side(agent);
        let batches: Vec<u8> = self
            .links(agent)
            .filter(|&number| {
                let channel = &self.channels[usize::from(number)];
                channel.published[side] != channel.ring[side].pushed
            })
            .collect();
        if batches.is_empty() {
            return vec![self.with(|next| next.agents[agent].step = Step::Look)];
        }
        let publish = |&number: &u8| {
            self.with(|next| {
                let channel = &mut next.channels[usize::from(number)];
                channel.published[side] = channel.ring[side].pushed;
                next.agents[agent].step = Step::Claim(number);
            })
        };
        batches.iter().map(publish).collect()
    }

    /// After one channel was published: the next one; a client that has closed is done.
    fn after_publish(&self, agent: usize, number: u8) -> Vec<Self> {
        if agent != SERVER && !self.channels[usize::from(number)].open[0] {
            vec![self.with(|next| next.agents[agent].step = Step::Done)]
        } else {
            self.publish(agent)
        }
    }

    /// The same world with its honest clients in a fixed order: which of them has which number makes no difference.
    fn canonical(self) -> Self {
        let honest = self.channels.len() - usize::from(self.setting.lies > 0);
        let mut order: Vec<usize> = (0..self.channels.len()).collect();
        order[..honest].sort_by_key(|&client| {
            let mut agent = self.agents[client + 1].clone();
            agent.renumber(&|_| 0);
            let server: Vec<Store> =
                self.agents[SERVER].buffer.iter().filter(|store| store.channel() == client as u8).copied().collect();
            let turn = self.agents[SERVER].step.channel() == Some(client as u8);
            (agent, self.channels[client], turn, server.len(), self.unreaped == Some(client as u8 + 1))
        });
        let place = |number: u8| order.iter().position(|&client| client == usize::from(number)).unwrap_or(0) as u8;
        let mut next = self.clone();
        for (new, &old) in order.iter().enumerate() {
            next.agents[new + 1] = self.agents[old + 1].clone();
            next.channels[new] = self.channels[old];
        }
        next.agents.iter_mut().for_each(|agent| agent.renumber(&place));
        next.unreaped = self.unreaped.map(|agent| if agent == 0 { 0 } else { place(agent - 1) + 1 });
        next
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut next = self.clone();
        change(&mut next);
        next
    }

    fn has_ended(&self, agent: usize) -> bool {
        matches!(self.agents[agent].step, Step::Done | Step::Dead)
    }

    /// What an agent and the hardware under it can do.
    fn agent_events(&self, agent: usize, events: &mut Vec<(Event, Self)>) {
        let state = &self.agents[agent];
        if let Some(&store) = state.buffer.first() {
            let next = self.with(|next| {
                next.agents[agent].buffer.remove(0);
                next.show(agent, store);
            });
            events.push((Event::Flush(agent, store), next));
        }
        if self.has_ended(agent) || self.is_liar(agent) {
            return;
        }
        events.extend(self.steps(agent).into_iter().map(|next| (Event::Step(agent, state.step), next)));
        if self.spurious > 0 {
            for how in [Doze::Armed, Doze::Blocked] {
                let next = self.with(|next| {
                    next.spurious -= 1;
                    next.ring(agent, how);
                });
                events.push((Event::Spurious(agent, how), next));
            }
        }
        if self.crashes > 0 && self.unreaped.is_none() {
            let next = self.with(|next| {
                next.crashes -= 1;
                next.agents[agent].step = Step::Dead;
                next.unreaped = Some(agent as u8);
            });
            events.push((Event::Crash(agent), next));
        }
    }

    /// The supervisor. It runs in the kernel's order after the crash: the dead program's stores are visible.
    fn reap(&self, agent: usize) -> Option<Self> {
        if !self.is_fenced(agent) {
            return None;
        }
        Some(self.with(|next| {
            next.unreaped = None;
            for number in self.links(agent) {
                next.channels[usize::from(number)].doze[side(agent)] = Doze::Closed;
                let peer = if agent == SERVER { usize::from(number) + 1 } else { SERVER };
                if self.setting.rules.reap_signals {
                    next.signal(peer);
                }
            }
        }))
    }

    fn lies(&self, events: &mut Vec<(Event, Self)>) {
        let channel = self.channels.len() - 1;
        if self.lies == 0 {
            return;
        }
        for doze in [Doze::Running, Doze::Armed, Doze::Blocked, Doze::Closed] {
            let next = self.with(|next| {
                next.lies -= 1;
                next.channels[channel].doze[0] = doze;
            });
            events.push((Event::LieDoze(doze), next));
        }
        let next = self.with(|next| {
            next.lies -= 1;
            next.channels[channel].garbage = true;
        });
        events.push((Event::LieEntry, next));
    }
}

fn side(agent: usize) -> usize {
    usize::from(agent == SERVER)
}

impl Model for World {
    type Event = Event;

    fn successors(&self) -> Vec<(Event, Self)> {
        let mut events = Vec::new();
        for agent in 0..self.agents.len() {
            self.agent_events(agent, &mut events);
        }
        if let Some(agent) = self.unreaped.map(usize::from)
            && let Some(next) = self.reap(agent)
        {
            events.push((Event::Reap(agent), next));
        }
        self.lies(&mut events);
        events.into_iter().map(|(event, next)| (event, next.canonical())).collect()
    }

    fn violation(&self) -> Option<String> {
        let overrun = |ring: &Ring| ring.pushed > ring.taken + self.setting.entries;
        self.channels
            .iter()
            .position(|channel| channel.ring.iter().any(overrun))
            .map(|channel| format!("a ring of channel {channel} holds more than its {} entries", self.setting.entries))
    }

    /// Every honest client has ended, and if nobody crashed with all its answers; the server sleeps.
    fn is_done(&self) -> bool {
        let answered = |client: usize| {
            let channel = &self.channels[client - 1];
            channel.ring[1].taken == self.setting.calls || self.agents[SERVER].step == Step::Dead
        };
        let client_done = |client: usize| match self.agents[client].step {
            Step::Dead => true,
            Step::Done => answered(client),
            _ => self.is_liar(client),
        };
        (1..self.agents.len()).all(client_done) && matches!(self.agents[SERVER].step, Step::Waiting | Step::Dead)
    }
}
