//! `tfy://records/<set>/<epoch>/<of>/<start>-<end>/<path>`: the records of a file that begin in
//! [start, end), as a file of their own.
//!
//! With b(x) the first record's beginning at or after x, it holds the bytes [b(start), b(end)): so
//! ranges without gaps and overlaps give each record exactly once. Records are counted as they
//! pass by; what is corrupt is handed on as it is, for TensorFlow to find.

use std::sync::{Arc, Mutex};

use crate::counters;
use crate::inflate::{Format, Inflated};
use crate::input::{mark, Amount, Share};
use crate::per_process::lock;
use crate::record::{end_of_record, Chain, HEADER};
use crate::resync::{self, Window};
use crate::scheme::ReadFile;
use crate::source::{self, Source};
use crate::status::{Code, Error, Outcome};

/// What is read with a file's beginning, to know what it is.
const HEAD_BYTES: u64 = 64 << 10;
/// TensorFlow reads some way beyond the end of a range, to find out that it is the end.
const BEYOND_BYTES: u64 = 512 << 10;
const SKIP_BYTES: usize = 1 << 20;

/// A range of a file, and the share that it is of.
#[derive(Debug, PartialEq, Eq)]
pub struct Split {
    pub share: Share,
    pub start: u64,
    pub end: u64,
    /// As it was given: it may hold any character.
    pub path: String,
}

impl Split {
    /// Of `<set>/<epoch>/<of>/<start>-<end>/<path>`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '/');
        let mut number = || parts.next()?.parse().ok();
        let share = Share { set: number()?, epoch: number()?, of: number()? };
        let (start, end) = parts.next()?.split_once('-')?;
        let (start, end) = (start.parse().ok()?, end.parse().ok()?);
        let path = parts.next()?.to_string();
        (share.of > 0 && start <= end).then_some(Self { share, start, end, path })
    }
}

/// Counts what passes by of one split.
pub struct Tally {
    split: Split,
    records: u64,
    /// Something was passed over, so it cannot be said to have been read.
    skipping: bool,
    ended: bool,
}

impl Tally {
    fn new(split: Split) -> Self {
        Self { split, records: 0, skipping: false, ended: false }
    }

    pub fn path(&self) -> &str {
        &self.split.path
    }

    pub fn add(&mut self, records: u64, skipped: bool) {
        self.skipping |= skipped;
        if records > 0 && !skipped {
            self.records += records;
            counters::current().inputs.add_records(self.split.share.set, records);
        }
    }

    /// All of it has been read: the bytes [begin, end) of the file.
    pub fn end(&mut self, begin: u64, end: u64) {
        if self.ended || self.skipping {
            return;
        }
        self.ended = true;
        let path = &self.split.path;
        let coverage = mark(path, end).wrapping_sub(mark(path, begin));
        let amount = Amount { records: self.records, bytes: end - begin, coverage };
        counters::current().inputs.end_split(self.split.share, amount);
    }
}

/// Opens the file that a split is of; `name` is the split's own.
pub fn open(name: &str, split: Split) -> Outcome<Box<dyn ReadFile>> {
    let source: Arc<dyn Source> = source::open(&split.path)?.into();
    open_source(name, split, source)
}

fn open_source(name: &str, split: Split, source: Arc<dyn Source>) -> Outcome<Box<dyn ReadFile>> {
    let mut head = Window::default();
    let head_end = if split.start == 0 { HEAD_BYTES } else { HEADER as u64 };
    let head_end = head_end.min(source.length());
    head.bytes.resize(head_end as usize, 0);
    source.expect(0, split.end.saturating_add(BEYOND_BYTES));
    match split.start {
        0 => source.read(0, &mut head.bytes)?,
        _ => source.probe(0, &mut head.bytes)?,
    }
    let format = match end_of_record(0, &head.bytes) {
        Some(_) => None,
        None => Format::of(&head.bytes),
    };
    match format {
        None => Ok(Box::new(Records::open(name, split, source, head)?)),
        Some(format) if split.start == 0 => {
            source.expect(0, source.length());
            Ok(Box::new(Inflated::new(name, Tally::new(split), source, format)))
        }
        Some(format) => {
            let what = format!(
                "is compressed ({format}) and can only be read from its beginning: this range \
                 begins at {}; give the whole file to one task",
                split.start
            );
            Err(Error::new(Code::InvalidArgument, &split.path, what))
        }
    }
}

/// A file of records as they are.
struct Records {
    name: String,
    pid: u32,
    source: Arc<dyn Source>,
    begin: u64,
    /// The split's end, within the file.
    end: u64,
    state: Mutex<State>,
}

struct State {
    tally: Tally,
    chain: Chain,
    /// What has been read of the file but not handed on.
    window: Window,
    /// b(end), once it is known and the record there is known to be one, or the file's end.
    stop: Option<u64>,
    /// The last record's end has been told to the source.
    told: bool,
}

impl Records {
    fn open(name: &str, split: Split, source: Arc<dyn Source>, head: Window) -> Outcome<Self> {
        let end = split.end.min(source.length());
        let (found, window) = match split.start {
            0 => (Some(0), head),
            start => {
                source.expect(start, end.saturating_add(BEYOND_BYTES));
                resync::find(source.as_ref(), start, end)?
            }
        };
        let begin = found.unwrap_or(end).min(end);
        let stop = (begin == end).then_some(end);
        let (tally, chain) = (Tally::new(split), Chain::at(begin));
        let state = Mutex::new(State { tally, chain, window, stop, told: false });
        Ok(Self { name: name.to_string(), pid: std::process::id(), source, begin, end, state })
    }

    /// Reads on from where the chain is; 0 at the end only, but otherwise perhaps less than asked.
    fn advance(&self, state: &mut State, buffer: &mut [u8], skipped: bool) -> Outcome<usize> {
        let from = state.chain.seen;
        let most = self.reach(state).saturating_sub(from).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..most];
        state.window.fill(self.source.as_ref(), from, buffer)?;
        let records = state.chain.take(buffer, self.end);
        state.tally.add(records, skipped && most > 0);
        self.settle(state, from, buffer)?;
        if let Some(stop) = state.stop.filter(|stop| *stop <= state.chain.seen) {
            state.chain.seen = stop;
            state.tally.end(self.begin, stop);
        }
        Ok((state.chain.seen - from) as usize)
    }

    /// How far to read: up to the last record's end, and the next header to judge it by.
    fn reach(&self, state: &State) -> u64 {
        let State { chain, stop, .. } = state;
        let ends = chain.next >= self.end && !chain.broken;
        let known = ends.then(|| chain.next.saturating_add(HEADER as u64));
        stop.or(known).unwrap_or(u64::MAX).min(self.source.length())
    }

    /// Once the chain has come to the end, finds out whether it is one: where no record follows
    /// the file is corrupt, and this is the split to hand that on. `buffer` was read at `from`.
    fn settle(&self, state: &mut State, from: u64, buffer: &[u8]) -> Outcome<()> {
        let State { chain, stop, told, window, .. } = state;
        if stop.is_some() || chain.broken || chain.next < self.end {
            return Ok(());
        }
        let (next, length) = (chain.next, self.source.length());
        if next > chain.seen {
            if !*told && next > self.end.saturating_add(BEYOND_BYTES) {
                let until = next.saturating_add(HEADER as u64);
                self.source.expect(chain.seen.max(window.end()), until);
            }
            *told = true;
            return Ok(());
        }
        let mut header = [0; HEADER];
        let size = (length - next).min(HEADER as u64) as usize;
        let here = &buffer[(next - from) as usize..];
        let here = &here[..here.len().min(size)];
        header[..here.len()].copy_from_slice(here);
        let rest = next + here.len() as u64;
        window.fill(self.source.as_ref(), rest, &mut header[here.len()..size])?;
        let follows = end_of_record(next, &header[..size]).is_some_and(|end| end <= length);
        match follows || next == length {
            true => *stop = Some(next),
            false => chain.broken = true,
        }
        Ok(())
    }
}

impl ReadFile for Records {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<usize> {
        let state = &mut *lock(&self.state);
        let position = self.begin.saturating_add(offset);
        if position > state.chain.seen {
            let mut passed = vec![0; SKIP_BYTES];
            while position > state.chain.seen {
                let left = (position - state.chain.seen).min(SKIP_BYTES as u64) as usize;
                if self.advance(state, &mut passed[..left], true)? == 0 {
                    return Ok(0);
                }
            }
        }
        let mut done = (state.chain.seen - position).min(buffer.len() as u64) as usize;
        // Read before, and counted then.
        self.source.read(position, &mut buffer[..done])?;
        while done < buffer.len() {
            match self.advance(state, &mut buffer[done..], false)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
