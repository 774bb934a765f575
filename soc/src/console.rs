//! The machine's console: bytes out, handed to a sink line by line.

/// Bytes held back at most before they go out without a line end.
const HOLD: usize = 4096;

type Sink = Box<dyn FnMut(&[u8])>;

/// Output of the UART.
#[derive(Default)]
pub(crate) struct Console {
    sink: Option<Sink>,
    held: Vec<u8>,
    digest: u64,
}

impl Console {
    pub fn set_sink(&mut self, sink: Sink) {
        self.sink = Some(sink);
    }

    pub fn put(&mut self, byte: u8) {
        // FNV-1a, so that a machine digest covers what was printed.
        self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        self.held.push(byte);
        if byte == b'\n' || self.held.len() >= HOLD {
            self.flush();
        }
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

    pub fn digest(&self) -> u64 {
        self.digest
    }
}
