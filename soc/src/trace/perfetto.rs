//! The file: Chrome's trace event format as JSON, one event a line, which Perfetto and `chrome://tracing` open.
//!
//! Times are microseconds of simulated time; a core cycle is 0.01 of them, so they are exact.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::board::at_cycle;

/// Where an event is drawn: a process and a thread of the viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Track {
    pub group: Group,
    pub number: usize,
}

/// The processes of the viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Harts = 0,
    Wire = 1,
}

/// What is said of an event besides its name.
pub(crate) type Arguments = Map<String, Value>;

#[derive(Serialize)]
struct Event<'a> {
    ph: char,
    pid: usize,
    tid: usize,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// A flow ends in the slice around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<char>,
    /// An instant belongs to its track.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<char>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    args: Arguments,
}

/// A trace that is being written. After the first failure nothing more is written; [`Trace::finish`] tells it.
pub(crate) struct Trace {
    out: Box<dyn Write>,
    events: u64,
    failed: Option<io::Error>,
}

impl Trace {
    pub fn new(out: Box<dyn Write>) -> Self {
        let mut trace = Self { out, events: 0, failed: None };
        trace.put(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        trace
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(bytes)
        {
            self.failed = Some(error);
        }
    }

    fn event(&mut self, event: &impl Serialize) {
        match serde_json::to_vec(event) {
            Ok(line) => {
                self.put(if self.events == 0 { b"\n" } else { b",\n" });
                self.put(&line);
                self.events += 1;
            }
            Err(error) => drop(self.failed.get_or_insert(error.into())),
        }
    }

    fn at(track: Track, ph: char, cycle: u64) -> Event<'static> {
        Event {
            ph,
            pid: track.group as usize,
            tid: track.number,
            ts: micros(at_cycle(cycle).as_ps()),
            dur: None,
            name: None,
            id: None,
            bp: None,
            s: None,
            args: Map::new(),
        }
    }

    /// Names a track and its group.
    pub fn name(&mut self, track: Track, group: &str, name: &str) {
        let (pid, tid) = (track.group as usize, track.number);
        self.event(&json!({"ph": "M", "pid": pid, "tid": tid, "name": "process_name", "args": {"name": group}}));
        self.event(&json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}));
    }

    /// A slice begins.
    pub fn begin(&mut self, track: Track, cycle: u64, name: &str, args: Arguments) {
        self.event(&Event { name: Some(name), args, ..Self::at(track, 'B', cycle) });
    }

    /// The slice begun last ends.
    pub fn end(&mut self, track: Track, cycle: u64) {
        self.event(&Self::at(track, 'E', cycle));
    }

    /// A slice whose end is known; times in picoseconds.
    pub fn slice(&mut self, track: Track, from_ps: u64, to_ps: u64, name: &str, args: Arguments) {
        let dur = Some(micros(to_ps - from_ps));
        self.event(&Event { name: Some(name), ts: micros(from_ps), dur, args, ..Self::at(track, 'X', 0) });
    }

    /// Something without duration.
    pub fn instant(&mut self, track: Track, cycle: u64, name: &str, args: Arguments) {
        self.event(&Event { name: Some(name), s: Some('t'), args, ..Self::at(track, 'i', cycle) });
    }

    /// An arrow starts in the slice around.
    pub fn arrow_from(&mut self, track: Track, cycle: u64, name: &str, id: u64) {
        self.event(&Event { name: Some(name), id: Some(id), ..Self::at(track, 's', cycle) });
    }

    /// It ends in the slice around.
    pub fn arrow_to(&mut self, track: Track, cycle: u64, name: &str, id: u64) {
        self.event(&Event { name: Some(name), id: Some(id), bp: Some('e'), ..Self::at(track, 'f', cycle) });
    }

    /// Completes the file. Errors: the first one of writing.
    pub fn finish(mut self) -> io::Result<()> {
        self.put(b"\n]}\n");
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

fn micros(ps: u64) -> f64 {
    ps as f64 / 1e6
}
