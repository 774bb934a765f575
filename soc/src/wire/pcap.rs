//! Packet capture in simulated time: [`Tee`] sits around a peer and writes what passes to a pcap file.
//!
//! Format: the classic libpcap file with nanosecond time stamps (magic 0xA1B2_3C4D, version 2.4, link type 1 = Ethernet), little
//! endian. A stamp is the time at the far end: last bit in for frames of the NIC, first bit out for frames to it. Frames carry
//! no check sequence, as Ethernet captures do. Sub-nanosecond parts are cut off.

use std::io::{self, Write};

use super::{Next, Peer};
use crate::time::SimTime;

const MAGIC_NANOSECONDS: u32 = 0xA1B2_3C4D;
const SNAPLEN: u32 = 65_535;
const LINKTYPE_ETHERNET: u32 = 1;

/// Writes a pcap file.
pub struct PcapWriter<W: Write> {
    out: W,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header. Errors: those of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC_NANOSECONDS.to_le_bytes());
        header.extend(2u16.to_le_bytes());
        header.extend(4u16.to_le_bytes());
        header.extend([0; 8]); // time zone, accuracy
        header.extend(SNAPLEN.to_le_bytes());
        header.extend(LINKTYPE_ETHERNET.to_le_bytes());
        out.write_all(&header)?;
        Ok(Self { out })
    }

    /// Appends one frame. Errors: those of the output.
    pub fn frame(&mut self, now: SimTime, frame: &[u8]) -> io::Result<()> {
        let nanoseconds = now.as_ns();
        // The widest frame of an AXI Ethernet is 32 KiB, below the snap length; a longer one would be cut, as the format allows.
        let kept = frame.len().min(SNAPLEN as usize);
        let mut record = Vec::with_capacity(16 + kept);
        record.extend(((nanoseconds / 1_000_000_000) as u32).to_le_bytes());
        record.extend(((nanoseconds % 1_000_000_000) as u32).to_le_bytes());
        record.extend((kept as u32).to_le_bytes());
        record.extend((frame.len() as u32).to_le_bytes());
        record.extend(&frame[..kept]);
        self.out.write_all(&record)
    }

    /// Flushes and returns the output. Errors: those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A peer that records all frames to and from the peer inside it.
///
/// The capture must not change the run, so a failing output (a full disk) ends the capture, with one line on standard error, and
/// not the machine.
pub struct Tee<W: Write + Send> {
    inner: Box<dyn Peer>,
    writer: Option<PcapWriter<W>>,
}

impl<W: Write + Send> Tee<W> {
    /// Records `inner` to `out`. Errors: those of writing the file header.
    pub fn new(inner: Box<dyn Peer>, out: W) -> io::Result<Self> {
        Ok(Self { inner, writer: Some(PcapWriter::new(out)?) })
    }

    fn record(&mut self, now: SimTime, frame: &[u8]) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.frame(now, frame)
        {
            eprintln!("soc: packet capture ends here: {error}");
            self.writer = None;
        }
    }
}

impl<W: Write + Send> Peer for Tee<W> {
    fn deliver(&mut self, now: SimTime, frame: &[u8]) {
        self.record(now, frame);
        self.inner.deliver(now, frame);
    }

    fn next(&mut self, now: SimTime) -> Next {
        let next = self.inner.next(now);
        if let Next::Frame(frame) = &next {
            self.record(now, frame);
        }
        next
    }

    fn finished(&self) -> bool {
        self.inner.finished()
    }

    fn repeatable(&self) -> bool {
        self.inner.repeatable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_file_with_one_frame() {
        let mut writer = PcapWriter::new(Vec::new()).unwrap();
        writer.frame(SimTime::from_ps(1_500_000_002_999), &[0xAB; 3]).unwrap();
        let bytes = writer.finish().unwrap();
        #[rustfmt::skip]
        assert_eq!(bytes, [
            0x4D, 0x3C, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 1, 0, 0, 0,
            1, 0, 0, 0, 0x02, 0x65, 0xCD, 0x1D, 3, 0, 0, 0, 3, 0, 0, 0, 0xAB, 0xAB, 0xAB,
        ]);
    }

    /// Accepts `room` bytes, then fails.
    struct Full {
        room: usize,
    }
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.room = self.room.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_does_not_stop_the_traffic() {
        let mut tee = Tee::new(Box::new(super::super::Loopback::new()), Full { room: 24 + 16 + 60 }).unwrap();
        for _ in 0..3 {
            tee.deliver(SimTime::ZERO, &[0; 60]);
        }
        for _ in 0..3 {
            assert_eq!(tee.next(SimTime::ZERO), Next::Frame(vec![0; 60]));
        }
        assert_eq!(tee.next(SimTime::ZERO), Next::Idle);
    }
}
