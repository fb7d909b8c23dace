//! Where the first record at or after an offset begins: b(x).
//!
//! What looks like a header (its length's checksum is right and the record fits into the file) may
//! stand inside another record's data, where that is a TFRecord file itself. So the chain of
//! records from there is followed. Where it breaks, either the file is corrupt or it was such data:
//! then the truth is found by the chain from the beginning of the file. The limit: data that holds
//! more than `CHAIN_BYTES` and `CHAIN_RECORDS` of records is taken for the file's own records.

use crate::record::{end_of_record, HEADER};
use crate::source::Source;
use crate::status::Outcome;

const SCAN_BYTES: usize = 256 << 10;
/// A chain that is as long as both is believed.
const CHAIN_BYTES: u64 = 1 << 20;
const CHAIN_RECORDS: u32 = 3;

/// A part of the file that has been read.
#[derive(Debug, Default)]
pub struct Window {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl Window {
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// What is here from `position` on; empty where it is not within.
    pub fn from(&self, position: u64) -> &[u8] {
        let skipped = position.checked_sub(self.offset).and_then(|skip| usize::try_from(skip).ok());
        skipped.and_then(|skip| self.bytes.get(skip..)).unwrap_or_default()
    }

    /// Fills `buffer` with the file's bytes from `position` on, from here as far as they are here.
    /// They are asked for in order: what is here is given up once it has been passed.
    pub fn fill(&mut self, source: &dyn Source, position: u64, buffer: &mut [u8]) -> Outcome<()> {
        let here = self.from(position);
        let count = here.len().min(buffer.len());
        buffer[..count].copy_from_slice(&here[..count]);
        if count < buffer.len() {
            if position >= self.offset && !self.bytes.is_empty() {
                self.bytes = Vec::new();
            }
            source.read(position + count as u64, &mut buffer[count..])?;
        }
        Ok(())
    }

    /// Forgets what lies before `position` and reads on to `end`, or the end of the file.
    fn slide(&mut self, source: &dyn Source, position: u64, end: u64) -> Outcome<()> {
        let kept = self.from(position).len();
        let begin = self.bytes.len() - kept;
        self.bytes.drain(..begin);
        self.offset = position;
        let more = end.min(source.length()).saturating_sub(self.end()) as usize;
        self.bytes.resize(kept + more, 0);
        source.read(position + kept as u64, &mut self.bytes[kept..])
    }
}

/// The first record that begins in [start, end), or None, and what was read from there on.
pub fn find(source: &dyn Source, start: u64, end: u64) -> Outcome<(Option<u64>, Window)> {
    if start == 0 || start >= end {
        return Ok(((start < end).then_some(start), Window::default()));
    }
    let mut window = Window { offset: start, bytes: Vec::new() };
    let mut position = start;
    while position < end {
        window.slide(source, position, position + SCAN_BYTES as u64)?;
        let Some(candidate) = first_header(&window, source.length(), end) else {
            // The last bytes may be the beginning of a header.
            let next = window.end().saturating_sub(HEADER as u64 - 1);
            match next > position && window.end() < source.length() {
                true => position = next,
                false => break,
            }
            continue;
        };
        window.slide(source, candidate, candidate + CHAIN_BYTES)?;
        let found = match holds(source, &window, candidate)? {
            true => candidate,
            false => walk(source, start)?.unwrap_or(candidate),
        };
        return Ok(((found < end).then_some(found), window));
    }
    Ok((None, Window::default()))
}

/// The first offset in `window` where a header stands that begins before `end`.
fn first_header(window: &Window, length: u64, end: u64) -> Option<u64> {
    let most = end.saturating_sub(window.offset).min(window.bytes.len() as u64) as usize;
    // The lengths alone tell nearly all other bytes: the checksum is computed for few.
    let fits = |header: &[u8]| {
        let length_here = header.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
        length_here < length
    };
    let headers = window.bytes.windows(HEADER).take(most).enumerate();
    headers.filter(|(_, header)| fits(header)).find_map(|(index, header)| {
        let position = window.offset + index as u64;
        end_of_record(position, header).filter(|end| *end <= length).map(|_| position)
    })
}

/// Whether a chain of records begins at `position` that is long enough or ends with the file.
fn holds(source: &dyn Source, window: &Window, position: u64) -> Outcome<bool> {
    let (mut next, mut records) = (position, 0);
    while next < source.length() {
        if records >= CHAIN_RECORDS && next - position >= CHAIN_BYTES {
            break;
        }
        match record_at(source, window, next)? {
            Some(end) => next = end,
            None => return Ok(false),
        }
        records += 1;
    }
    Ok(true)
}

/// The end of the record at `position`, which lies within the file, or None.
fn record_at(source: &dyn Source, window: &Window, position: u64) -> Outcome<Option<u64>> {
    if source.length() - position < HEADER as u64 {
        return Ok(None);
    }
    let mut header = [0; HEADER];
    match window.from(position).first_chunk::<HEADER>() {
        Some(bytes) => header = *bytes,
        None => source.probe(position, &mut header)?,
    }
    Ok(end_of_record(position, &header).filter(|end| *end <= source.length()))
}

/// The first record at or after `start` by the chain from the beginning of the file, or None
/// where that chain breaks before: then another reader comes upon what is corrupt.
fn walk(source: &dyn Source, start: u64) -> Outcome<Option<u64>> {
    let mut window = Window::default();
    let mut position = 0;
    while position < start {
        if window.from(position).len() < HEADER {
            // Large records are stepped over, small ones read in one go.
            let size = if position > window.end() + CHAIN_BYTES { 0 } else { CHAIN_BYTES };
            let size = size.max(HEADER as u64).min(source.length() - position);
            window = Window { offset: position, bytes: vec![0; size as usize] };
            source.probe(position, &mut window.bytes)?;
        }
        match record_at(source, &window, position)? {
            Some(end) => position = end,
            None => return Ok(None),
        }
    }
    Ok(Some(position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use crate::source::tests::Memory;
    use std::sync::atomic::Ordering::Relaxed;

    fn joined(sizes: &[usize]) -> (Vec<u8>, Vec<u64>) {
        let (mut bytes, mut boundaries) = (Vec::new(), vec![0]);
        for (i, size) in sizes.iter().enumerate() {
            bytes.extend(record(&vec![i as u8; *size]));
            boundaries.push(bytes.len() as u64);
        }
        (bytes, boundaries)
    }

    fn found(bytes: &[u8], start: u64, end: u64) -> Option<u64> {
        find(&Memory::new(bytes), start, end).unwrap().0
    }

    /// Numbers that look like chance.
    fn noise(size: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let step = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..size).map(step).collect()
    }

    #[test]
    fn each_offset_leads_to_the_next_boundary() {
        let (bytes, boundaries) = joined(&[3, 0, 0, 40, 1, 100, 0]);
        let length = bytes.len() as u64;
        for start in 0..=length {
            let expected = *boundaries.iter().find(|boundary| **boundary >= start).unwrap();
            let within = (expected < length).then_some(expected);
            assert_eq!(found(&bytes, start, length), within, "from {start}");
            for end in start..length {
                assert_eq!(found(&bytes, start, end), within.filter(|found| *found < end));
            }
        }
    }

    #[test]
    fn large_records_are_passed_over_in_windows() {
        let (bytes, boundaries) = joined(&[1 << 20, 10, 700 << 10, 5]);
        let length = bytes.len() as u64;
        let inner = 12..bytes.len() as u64;
        for start in inner.step_by(SCAN_BYTES / 2 + 7).chain(boundaries.iter().map(|b| b + 1)) {
            let expected = boundaries.iter().copied().find(|boundary| *boundary >= start);
            let expected = expected.filter(|boundary| *boundary < length);
            assert_eq!(found(&bytes, start, length), expected, "from {start}");
        }
        let source = Memory::new(&bytes);
        assert_eq!(find(&source, 100, 1 << 19).unwrap().0, None);
        assert!(source.read.load(Relaxed) < (1 << 19) + 2 * SCAN_BYTES as u64);
    }

    #[test]
    fn what_was_read_is_kept_from_the_boundary_on() {
        let (bytes, boundaries) = joined(&[1000; 5000]);
        let source = Memory::new(&bytes);
        let (found, window) = find(&source, 5000, 2 << 20).unwrap();
        assert_eq!((found, window.offset), (Some(boundaries[5]), boundaries[5]));
        assert_eq!(window.bytes.len() as u64, CHAIN_BYTES);
        assert_eq!(window.bytes, bytes[window.offset as usize..window.end() as usize]);
        // Nothing is read twice.
        assert_eq!(source.read.load(Relaxed), window.end() - 5000);
    }

    #[test]
    fn data_that_looks_like_records_is_passed_over() {
        let inner: Vec<u8> = [5, 0, 17].iter().flat_map(|size| record(&vec![1; *size])).collect();
        let mut tails = noise(50);
        tails.extend([0; 50]);
        let payloads = [inner.clone(), [inner.clone(), tails].concat(), inner[..40].to_vec()];
        for payload in payloads {
            let file: Vec<u8> = [b"first".to_vec(), payload, b"last".to_vec()]
                .iter()
                .flat_map(|d| record(d))
                .collect();
            let length = file.len() as u64;
            let second = 16 + 5;
            let third = length - (16 + 4);
            for start in 1..=second {
                assert_eq!(found(&file, start, length), Some(second), "from {start}");
            }
            for start in second + 1..=third {
                assert_eq!(found(&file, start, length), Some(third), "from {start}");
            }
            assert_eq!(found(&file, third + 1, length), None);
        }
    }

    #[test]
    fn a_record_that_ends_the_file_inside_the_last_one_is_passed_over() {
        let file = [record(b"first"), record(&record(b"inner"))].concat();
        assert_eq!(found(&file, 22, file.len() as u64), None);
    }

    #[test]
    fn noise_does_not_fool_it() {
        let file = [record(&noise(4 << 20)), record(&noise(1000))].concat();
        let second = (4 << 20) + 16;
        assert_eq!(found(&file, 1, file.len() as u64), Some(second));
        let zeros = [record(&vec![0; 1 << 20]), record(b"x")].concat();
        assert_eq!(found(&zeros, 1, zeros.len() as u64), Some((1 << 20) + 16));
    }

    #[test]
    fn what_is_corrupt_further_on_does_not_hide_the_records_before_it() {
        let (bytes, boundaries) = joined(&[50; 40]);
        let length = bytes.len() as u64;
        for corrupt in 3..40 {
            let mut bytes = bytes.clone();
            bytes[boundaries[corrupt] as usize + 9] ^= 1;
            assert_eq!(found(&bytes, boundaries[1] + 1, length), Some(boundaries[2]));
        }
        // What is corrupt before is another reader's to find.
        let mut broken = bytes.clone();
        broken[9] ^= 1;
        assert_eq!(found(&broken, 1, length), Some(boundaries[1]));
        // A last record that was cut off is none.
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(found(cut, boundaries[1] + 1, length), Some(boundaries[2]));
        assert_eq!(found(cut, boundaries[38] + 1, length), None);
    }
}
