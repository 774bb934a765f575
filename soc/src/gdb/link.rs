//! The connection to gdb: a TCP stream, buffered both ways, that can be asked whether a byte has come.

use gdbstub::conn::Connection;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;

/// Bytes taken from the stream at once.
const CHUNK: usize = 4096;

pub(super) struct Link {
    stream: TcpStream,
    incoming: Vec<u8>,
    taken: usize,
    outgoing: Vec<u8>,
}

impl Link {
    pub fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, incoming: Vec::new(), taken: 0, outgoing: Vec::new() })
    }

    /// The next byte; none if the connection is gone.
    pub fn wait(&mut self) -> Option<u8> {
        if let Some(byte) = self.buffered() {
            return Some(byte);
        }
        self.flush().ok()?;
        self.fill().ok()?;
        self.buffered()
    }

    /// The next byte if one has come. Error: the connection is gone.
    pub fn poll(&mut self) -> std::io::Result<Option<u8>> {
        if let Some(byte) = self.buffered() {
            return Ok(Some(byte));
        }
        self.flush()?;
        self.stream.set_nonblocking(true)?;
        let filled = self.fill();
        self.stream.set_nonblocking(false)?;
        match filled {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            other => other.map(|()| self.buffered()),
        }
    }

    fn buffered(&mut self) -> Option<u8> {
        let byte = self.incoming.get(self.taken).copied()?;
        self.taken += 1;
        Some(byte)
    }

    fn fill(&mut self) -> std::io::Result<()> {
        self.taken = 0;
        self.incoming.resize(CHUNK, 0);
        let got = self.stream.read(&mut self.incoming);
        self.incoming.truncate(*got.as_ref().unwrap_or(&0));
        if got? == 0 { Err(Error::from(ErrorKind::UnexpectedEof)) } else { Ok(()) }
    }
}

impl Connection for Link {
    type Error = Error;

    fn write(&mut self, byte: u8) -> Result<(), Error> {
        self.outgoing.push(byte);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let sent = Write::write_all(&mut self.stream, &self.outgoing);
        self.outgoing.clear();
        sent
    }
}
