//! The frame of a TFRecord, and the chain of records that a file is.
//!
//! A record is the length of its data (8 bytes, little endian), the masked CRC32C of these 8
//! bytes, the data, and the masked CRC32C of the data; the next record follows at once. All
//! numbers here are offsets in bytes.

/// The length and its checksum.
pub const HEADER: usize = 12;
/// What a record has besides its data.
const FRAME: u64 = HEADER as u64 + 4;

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

static TABLES: [[u32; 256]; 8] = tables();

/// The masked CRC32C of a number's 8 bytes, each looked up in a table of its own.
fn masked_crc(number: u64) -> u32 {
    let mixed = (number ^ 0xffff_ffff).to_le_bytes();
    let crc = (0..8).fold(0, |crc, i| crc ^ TABLES[7 - i][mixed[i] as usize]);
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Where the record that begins at `position` ends, if its header is one; `header` has at least
/// `HEADER` bytes.
pub fn end_of_record(position: u64, header: &[u8]) -> Option<u64> {
    let (length, rest) = header.split_first_chunk::<8>()?;
    let crc = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    let length = u64::from_le_bytes(*length);
    if masked_crc(length) != crc {
        return None;
    }
    position.checked_add(FRAME)?.checked_add(length)
}

/// The chain of records in bytes that pass by in order.
#[derive(Debug)]
pub struct Chain {
    /// Up to where the bytes have passed by.
    pub seen: u64,
    /// Where the next record begins.
    pub next: u64,
    /// What stood at `next` was no header: where the next record begins is not known any more.
    pub broken: bool,
    header: [u8; HEADER],
    filled: usize,
}

impl Chain {
    /// The chain from a record that begins at `boundary`.
    pub fn at(boundary: u64) -> Self {
        Self { seen: boundary, next: boundary, broken: false, header: [0; HEADER], filled: 0 }
    }

    /// Takes the bytes that follow those before; the number of records whose header is complete
    /// with them and that begin before `end`.
    pub fn take(&mut self, data: &[u8], end: u64) -> u64 {
        let mut records = 0;
        while self.next < end && !self.broken {
            let Some(header) = self.header_in(data) else {
                break;
            };
            match end_of_record(self.next, &header) {
                Some(next) => {
                    self.next = next;
                    records += 1;
                }
                None => self.broken = true,
            }
        }
        self.seen += data.len() as u64;
        records
    }

    /// The header at `next` where `data`, which begins at `seen`, completes it.
    fn header_in(&mut self, data: &[u8]) -> Option<[u8; HEADER]> {
        let begin = (self.next + self.filled as u64 - self.seen) as usize;
        let rest = data.get(begin..)?;
        if self.filled == 0 {
            if let Some(header) = rest.first_chunk() {
                return Some(*header);
            }
        }
        let count = rest.len().min(HEADER - self.filled);
        self.header[self.filled..self.filled + count].copy_from_slice(&rest[..count]);
        self.filled += count;
        if self.filled < HEADER {
            return None;
        }
        self.filled = 0;
        Some(self.header)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A record as TensorFlow writes it, but for the checksum of its data, which nobody here reads.
    pub fn record(data: &[u8]) -> Vec<u8> {
        let length = data.len() as u64;
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(masked_crc(length).to_le_bytes());
        bytes.extend(data);
        bytes.extend([0xc5; 4]);
        bytes
    }

    #[test]
    fn headers_are_those_that_tensorflow_writes() {
        // TFRecordWriter, records of 0, 5 and 100,000 bytes.
        for (length, crc) in [(0_u64, [0x29, 0x03, 0x98, 0x07]), (5, [0xea, 0xb2, 0x04, 0x3e])] {
            let header = [length.to_le_bytes().as_slice(), &crc].concat();
            assert_eq!(end_of_record(7, &header), Some(7 + 16 + length));
        }
        let mut header = record(&[0; 100_000])[..HEADER].to_vec();
        assert_eq!(end_of_record(0, &header), Some(100_016));
        header[0] ^= 1;
        assert_eq!(end_of_record(0, &header), None);
        assert_eq!(end_of_record(0, &header[..11]), None);
        assert_eq!(end_of_record(0, &[0; HEADER]), None);
    }

    #[test]
    fn a_length_beyond_all_numbers_is_no_record() {
        let length = u64::MAX - 3;
        let header = [length.to_le_bytes().as_slice(), &masked_crc(length).to_le_bytes()].concat();
        assert_eq!(end_of_record(0, &header), None);
    }

    #[test]
    fn a_chain_counts_the_same_whatever_the_pieces() {
        let sizes = [0, 1, 0, 0, 30, 5, 0, 100, 7];
        let bytes: Vec<u8> = sizes.iter().flat_map(|size| record(&vec![9; *size])).collect();
        for piece in 1..=bytes.len() {
            let mut chain = Chain::at(1000);
            let records: u64 = bytes.chunks(piece).map(|data| chain.take(data, u64::MAX)).sum();
            assert_eq!(records, sizes.len() as u64, "pieces of {piece}");
            assert_eq!((chain.next, chain.seen), (chain.seen, 1000 + bytes.len() as u64));
        }
    }

    #[test]
    fn a_chain_ends_with_the_first_record_at_or_after_the_end() {
        let bytes = [record(b"a"), record(b"b"), record(b"c")].concat();
        for (end, records, next) in [(0, 0, 0), (1, 1, 17), (17, 1, 17), (18, 2, 34), (99, 3, 51)] {
            let mut chain = Chain::at(0);
            assert_eq!(chain.take(&bytes, end), records, "end {end}");
            assert_eq!(chain.next, next);
        }
    }

    #[test]
    fn a_wrong_header_breaks_the_chain_for_good() {
        let mut bytes = [record(b"a"), record(b"b"), record(b"c")].concat();
        bytes[17 + 9] ^= 1;
        for piece in [1, 5, 51] {
            let mut chain = Chain::at(0);
            let records: u64 = bytes.chunks(piece).map(|data| chain.take(data, u64::MAX)).sum();
            assert_eq!((records, chain.next, chain.broken), (1, 17, true));
            assert_eq!(chain.seen, 51);
        }
    }
}
