//! The machine's console: bytes out, handed to a sink line by line.

use crate::error::SocError;
use crate::snapshot::State;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bytes held back at most before they go out without a line end.
const HOLD: usize = 4096;

type Sink = Box<dyn FnMut(&[u8])>;

/// Output of the UART.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Console {
    #[serde(skip)]
    sink: Option<Sink>,
    held: Vec<u8>,
    digest: u64,
    /// Texts that somebody waits for.
    #[serde(skip)]
    expected: Vec<Expected>,
}

/// A text, and the latest bytes printed, as many as it has.
struct Expected {
    text: String,
    latest: VecDeque<u8>,
    printed: bool,
}

impl Expected {
    fn see(&mut self, byte: u8) {
        self.latest.push_back(byte);
        if self.latest.len() > self.text.len() {
            self.latest.pop_front();
        }
        self.printed |= self.latest.iter().eq(self.text.as_bytes());
    }
}

impl Console {
    pub fn set_sink(&mut self, sink: Sink) {
        self.sink = Some(sink);
    }

    pub fn put(&mut self, byte: u8) {
        // FNV-1a, so that a machine digest covers what was printed.
        self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        for expected in &mut self.expected {
            expected.see(byte);
        }
        self.held.push(byte);
        if byte == b'\n' || self.held.len() >= HOLD {
            self.flush();
        }
    }

    /// Watches out for `text` from now on.
    pub fn expect(&mut self, text: &str) {
        if !self.expected.iter().any(|expected| expected.text == text) {
            self.expected.push(Expected { text: text.to_owned(), latest: VecDeque::new(), printed: false });
        }
    }

    /// `text`, which is watched out for, has been printed.
    pub fn has_printed(&self, text: &str) -> bool {
        self.expected.iter().any(|expected| expected.printed && expected.text == text)
    }

    /// Hands out what is held.
    pub fn flush(&mut self) {
        if let Some(sink) = &mut self.sink
            && !self.held.is_empty()
        {
            sink(&self.held);
        }
        self.held.clear();
    }

    /// Takes the state of a console that was saved, and keeps the sink.
    pub fn restore(&mut self, state: &State) -> Result<(), SocError> {
        let sink = self.sink.take();
        *self = Self { sink, ..state.read()? };
        Ok(())
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }
}
