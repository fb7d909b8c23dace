//! Compressed files of records, as TensorFlow writes them: gzip (several members too) and zlib.
//! What is inflated streams by; a file that ends early is an error, never a silent end.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::sync::{Arc, Mutex};

use flate2::bufread::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use crate::per_process::lock;
use crate::record::Chain;
use crate::records::Tally;
use crate::scheme::ReadFile;
use crate::source::Source;
use crate::status::{Code, Error, Outcome};

const INPUT_BYTES: usize = 256 << 10;
const SKIP_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Gzip,
    Zlib,
}

impl Format {
    /// By a file's first bytes.
    pub fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // Deflate with a window of up to 32 KiB, and a check of both bytes.
            [method, flags, ..]
                if method & 0x8f == 0x08
                    && u16::from_be_bytes([*method, *flags]).is_multiple_of(31) =>
            {
                Some(Self::Zlib)
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
        })
    }
}

/// The records in a compressed file, as a file of their own.
pub struct Inflated {
    name: String,
    pid: u32,
    source: Arc<dyn Source>,
    format: Format,
    state: Mutex<State>,
}

struct State {
    tally: Tally,
    chain: Chain,
    content: Box<dyn Read + Send>,
    /// Where `content` is.
    position: u64,
}

impl Inflated {
    pub fn new(name: &str, tally: Tally, source: Arc<dyn Source>, format: Format) -> Self {
        let content = inflate(Arc::clone(&source), format);
        let state = Mutex::new(State { tally, chain: Chain::at(0), content, position: 0 });
        Self { name: name.to_string(), pid: std::process::id(), source, format, state }
    }

    /// Reads on; 0 at the end only, but otherwise perhaps less than asked.
    fn advance(&self, state: &mut State, buffer: &mut [u8], skipped: bool) -> Outcome<usize> {
        let State { tally, chain, content, position } = state;
        let count = loop {
            match content.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.translate(tally.path(), error)),
                Ok(count) => break count,
            }
        };
        // What was inflated before, to come back to where it is, is known.
        let known = (chain.seen - *position).min(count as u64) as usize;
        *position += count as u64;
        let fresh = &buffer[known..count];
        let records = chain.take(fresh, u64::MAX);
        tally.add(records, skipped && !fresh.is_empty());
        if count == 0 && !buffer.is_empty() && !chain.broken && chain.next == chain.seen {
            tally.end(0, self.source.length());
        }
        Ok(count)
    }

    fn translate(&self, path: &str, error: std::io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let what = format!("the {} data ends early: the file is truncated", self.format);
                Error::new(Code::DataLoss, path, what)
            }
            Err(error) => {
                let what = format!("the {} data is corrupt: {error}", self.format);
                Error::new(Code::DataLoss, path, what)
            }
        }
    }
}

impl ReadFile for Inflated {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<usize> {
        let state = &mut *lock(&self.state);
        if offset < state.position {
            self.source.expect(0, self.source.length());
            state.content = inflate(Arc::clone(&self.source), self.format);
            state.position = 0;
        }
        if offset > state.position {
            let mut passed = vec![0; SKIP_BYTES];
            while offset > state.position {
                let left = (offset - state.position).min(SKIP_BYTES as u64) as usize;
                if self.advance(state, &mut passed[..left], true)? == 0 {
                    return Ok(0);
                }
            }
        }
        let mut done = 0;
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

fn inflate(source: Arc<dyn Source>, format: Format) -> Box<dyn Read + Send> {
    let input = BufReader::with_capacity(INPUT_BYTES, InOrder { source, position: 0 });
    match format {
        Format::Gzip => Box::new(MultiGzDecoder::new(input)),
        Format::Zlib => Box::new(Zlib { input, stream: Decompress::new(true), inside: true }),
    }
}

/// A source from its beginning to its end.
struct InOrder {
    source: Arc<dyn Source>,
    position: u64,
}

impl Read for InOrder {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.source.length() - self.position;
        let count = left.min(buffer.len() as u64) as usize;
        self.source.read(self.position, &mut buffer[..count]).map_err(std::io::Error::other)?;
        self.position += count as u64;
        Ok(count)
    }
}

/// flate2's own decoder takes the end of its input for the end of the stream.
struct Zlib<R> {
    input: R,
    stream: Decompress,
    inside: bool,
}

impl<R: BufRead> Read for Zlib<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while !buffer.is_empty() {
            let input = self.input.fill_buf()?;
            if !self.inside {
                if input.is_empty() {
                    return Ok(0);
                }
                // One stream after another, as gzip has members.
                self.stream.reset(true);
                self.inside = true;
            }
            let (at_end, taken, given) =
                (input.is_empty(), self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(input, buffer, FlushDecompress::None)?;
            let taken = (self.stream.total_in() - taken) as usize;
            let given = (self.stream.total_out() - given) as usize;
            self.input.consume(taken);
            self.inside = status != Status::StreamEnd;
            if given > 0 {
                return Ok(given);
            }
            if at_end && self.inside {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}
