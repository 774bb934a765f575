//! The packets of several machines in one pcap file.
//!
//! Every machine starts at time zero, so their captures are put one after another: each begins at a whole multiple of ten
//! seconds after the last frame of the one before. Machines stand in the order of the jobs, and the file is the same for
//! any number of threads.

/// Length of the header of a pcap file (libpcap, pcap-savefile(5)).
const FILE_HEADER: usize = 24;
/// Length of the header of a record: seconds, fraction, bytes kept, bytes of the frame; four little-endian words.
const RECORD_HEADER: usize = 16;
/// Captures begin at multiples of this.
const BOUNDARY_S: u32 = 10;

/// One file with the records of all `captures`, which `soc` has written.
///
/// # Panics
/// If a capture is not a pcap file.
pub fn join(captures: &[Vec<u8>]) -> Vec<u8> {
    let mut file = captures.first().map(|first| first[..FILE_HEADER].to_vec()).unwrap_or_default();
    let mut begin = 0;
    for capture in captures {
        let mut last = begin;
        let mut rest = &capture[FILE_HEADER..];
        while let Some((header, after)) = rest.split_first_chunk::<RECORD_HEADER>() {
            let word = |index: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[index * 4 + byte]));
            let (frame, next) = after.split_at(word(2) as usize);
            last = begin + word(0);
            file.extend(last.to_le_bytes());
            file.extend(&header[4..]);
            file.extend(frame);
            rest = next;
        }
        begin = (last / BOUNDARY_S + 1) * BOUNDARY_S;
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use soc::time::SimTime;
    use soc::wire::pcap::PcapWriter;

    /// A capture of frames at these times, in milliseconds, each filled with its byte.
    fn capture(frames: &[(u64, u8)]) -> Vec<u8> {
        let mut writer = PcapWriter::new(Vec::new()).unwrap();
        for (time_ms, byte) in frames {
            writer.frame(SimTime::from_us(time_ms * 1000), &[*byte; 60]).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn captures_follow_each_other() {
        let joined = join(&[capture(&[(1, 1), (10_500, 2)]), capture(&[]), capture(&[(7, 3)])]);
        assert_eq!(joined, capture(&[(1, 1), (10_500, 2), (30_007, 3)]));
        assert_eq!(join(&[capture(&[(1, 1)])]), capture(&[(1, 1)]));
        assert!(join(&[]).is_empty());
    }
}
