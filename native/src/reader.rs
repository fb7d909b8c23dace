//! Reading a file of HDFS. A reader that goes through the file in order gets its data from a
//! stream that runs ahead (twice as fast as one request for each read); others ask for each range.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use hdfs_native::file::FileReader;
use hdfs_native::HdfsError;
use tokio::sync::mpsc;

use crate::per_process::lock;
use crate::process::Target;
use crate::scheme::ReadFile;
use crate::status::{Code, Error, Outcome};
use crate::{counters, fork};

/// Packets (64 KiB) cross threads in batches of up to this size: one wake-up for each. Batches
/// grow from one packet, so that the first bytes are not held back.
const BATCH_BYTES: usize = 1 << 20;

/// When what failed is tried again, much as Hadoop's own client does; not after `RETRY_WITHIN`.
const RETRY_AFTER: [Duration; 3] = [Duration::ZERO, Duration::from_secs(3), Duration::from_secs(6)];
const RETRY_WITHIN: Duration = Duration::from_secs(30);

type Batch = Result<VecDeque<Bytes>, HdfsError>;

/// A running stream: `packets` begin at `position` of the file.
struct Stream {
    position: u64,
    packets: VecDeque<Bytes>,
    batches: mpsc::Receiver<Batch>,
}

/// What is known of the order of reads.
struct Order {
    stream: Option<Stream>,
    /// Where the next read begins if it goes on from the last one.
    next: u64,
    /// The stream does not run beyond.
    until: u64,
}

pub struct HdfsReader {
    name: String,
    pid: u32,
    target: Target,
    file: Mutex<Arc<FileReader>>,
    length: u64,
    order: Mutex<Order>,
}

impl HdfsReader {
    pub fn open(path: &str) -> Outcome<Self> {
        let target = Target::of(path)?;
        let file = target.wait(target.client.read(&target.uri.path))?;
        let length = file.file_length() as u64;
        let (name, pid) = (path.to_string(), std::process::id());
        let order = Mutex::new(Order { stream: None, next: 0, until: length });
        Ok(Self { name, pid, target, file: Mutex::new(Arc::new(file)), length, order })
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// From now on reads go in order from `next` on, and hardly beyond `until`.
    pub fn expect(&self, next: u64, until: u64) {
        *lock(&self.order) = Order { stream: None, next, until: until.min(self.length) };
    }

    /// Fills `buffer`, which lies within the file, and leaves what is read in order alone.
    pub fn probe(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
        self.try_again(|| self.fill_range(offset, buffer))?;
        counters::current().add_read(buffer.len());
        Ok(())
    }

    /// Reads without counting: `buffer` lies within the file.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
        self.try_again(|| self.fill_once(offset, buffer))
    }

    /// What failed is tried again with the file opened anew. One that is open knows where its
    /// blocks were at the start, never asks a DataNode again that failed once, and its tokens end
    /// after hours; a DataNode also drops a stream that was left alone for minutes.
    fn try_again(&self, mut action: impl FnMut() -> Outcome<()>) -> Outcome<()> {
        fork::wait_for_parents_connections();
        let start = Instant::now();
        let mut outcome = action();
        for pause in RETRY_AFTER {
            if outcome.is_ok() || start.elapsed() > RETRY_WITHIN {
                break;
            }
            std::thread::sleep(pause);
            self.reopen()?;
            outcome = action();
        }
        outcome
    }

    fn reopen(&self) -> Outcome<()> {
        let file = self.target.wait(self.target.client.read(&self.target.uri.path))?;
        let length = file.file_length() as u64;
        if length < self.length {
            let what = format!("had {} bytes when it was opened, and {length} now", self.length);
            return Err(Error::new(Code::DataLoss, &self.name, what));
        }
        *lock(&self.file) = Arc::new(file);
        Ok(())
    }

    fn file(&self) -> Arc<FileReader> {
        Arc::clone(&lock(&self.file))
    }

    fn read_ahead_bytes(&self) -> usize {
        self.target.process.settings.read_ahead_bytes
    }

    fn fill_once(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
        // Two threads in one file do not go through it in order: no waiting for one another.
        if let Ok(mut order) = self.order.try_lock() {
            let end = offset + buffer.len() as u64;
            let in_order =
                order.next == offset && end <= order.until && self.read_ahead_bytes() > 0;
            let stream = order.stream.take().filter(|stream| stream.position == offset);
            if in_order {
                let until = order.until;
                let mut stream = stream.unwrap_or_else(|| self.start(offset, until));
                self.fill_from(&mut stream, buffer)?;
                order.stream = Some(stream);
            }
            order.next = end;
            if in_order {
                return Ok(());
            }
        }
        self.fill_range(offset, buffer)
    }

    fn fill_range(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
        let file = self.file();
        let outcome = self.target.process.block_on(file.read_range_buf(buffer, offset as usize));
        fork::note_read();
        outcome.map_err(|error| Error::from_hdfs(&self.name, error))
    }

    fn fill_from(&self, stream: &mut Stream, buffer: &mut [u8]) -> Outcome<()> {
        let mut done = 0;
        while done < buffer.len() {
            let taken = stream.take(&mut buffer[done..]);
            done += taken;
            if taken > 0 {
                continue;
            }
            match stream.batches.blocking_recv() {
                Some(Ok(packets)) => stream.packets = packets,
                Some(Err(error)) => return Err(Error::from_hdfs(&self.name, error)),
                None => {
                    let what = format!("the data ends at offset {}", stream.position);
                    return Err(Error::new(Code::DataLoss, &self.name, what));
                }
            }
        }
        Ok(())
    }

    fn start(&self, position: u64, until: u64) -> Stream {
        let rest = (until - position) as usize;
        let source = self.file().read_range_stream(position as usize, rest);
        let ahead = self.read_ahead_bytes();
        let (sender, batches) = mpsc::channel(ahead.div_ceil(BATCH_BYTES).max(1));
        self.target.process.spawn(pump(source, sender, BATCH_BYTES.min(ahead)));
        Stream { position, packets: VecDeque::new(), batches }
    }
}

impl Stream {
    /// Moves what is here of the first packet into `buffer`.
    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let Some(packet) = self.packets.front_mut() else {
            return 0;
        };
        let count = packet.len().min(buffer.len());
        packet.copy_to_slice(&mut buffer[..count]);
        if packet.is_empty() {
            self.packets.pop_front();
        }
        self.position += count as u64;
        count
    }
}

/// Hands the packets of `source` over until it ends or nobody listens any more.
async fn pump(
    source: impl futures_util::Stream<Item = hdfs_native::Result<Bytes>>,
    sender: mpsc::Sender<Batch>,
    most: usize,
) {
    let mut source = pin!(source);
    let (mut batch, mut size, mut wanted) = (VecDeque::new(), 0, 1);
    while let Some(item) = source.next().await {
        fork::note_read();
        match item {
            Ok(packet) if packet.is_empty() => {}
            Ok(packet) => {
                size += packet.len();
                batch.push_back(packet);
            }
            Err(error) => {
                // Without a listener there is nobody to tell.
                let _ = sender.send(Ok(std::mem::take(&mut batch))).await;
                let _ = sender.send(Err(error)).await;
                return;
            }
        }
        if size >= wanted {
            wanted = (2 * size).min(most);
            size = 0;
            if sender.send(Ok(std::mem::take(&mut batch))).await.is_err() {
                return;
            }
        }
    }
    let _ = sender.send(Ok(batch)).await;
}

impl ReadFile for HdfsReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<usize> {
        let left = self.length.saturating_sub(offset).min(buffer.len() as u64) as usize;
        if left > 0 {
            self.fill(offset, &mut buffer[..left])?;
            counters::current().add_read(left);
        }
        Ok(left)
    }

    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }
}

/// Hands everything in `source` to `write`, in order and without counting.
pub fn copy_all(source: &HdfsReader, write: impl Fn(&[u8]) -> Outcome<()>) -> Outcome<()> {
    let mut buffer = vec![0; BATCH_BYTES];
    let mut offset = 0;
    while offset < source.length {
        let count = buffer.len().min((source.length - offset) as usize);
        source.fill(offset, &mut buffer[..count])?;
        write(&buffer[..count])?;
        offset += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_in_pieces() {
        let (_, batches) = mpsc::channel(1);
        let packets = VecDeque::from([Bytes::from_static(b"abc"), Bytes::from_static(b"de")]);
        let mut stream = Stream { position: 10, packets, batches };
        let mut buffer = [0; 2];
        assert_eq!(stream.take(&mut buffer), 2);
        assert_eq!(&buffer, b"ab");
        assert_eq!(stream.take(&mut buffer), 1);
        assert_eq!(stream.take(&mut buffer), 2);
        assert_eq!(&buffer, b"de");
        assert_eq!((stream.take(&mut buffer), stream.position), (0, 15));
    }

    #[test]
    fn batches_grow_and_lose_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let packets: Vec<_> = (0..20).map(|i| Ok(Bytes::from(vec![i; 10]))).collect();
        let (sender, mut batches) = mpsc::channel(100);
        runtime.block_on(pump(futures_util::stream::iter(packets), sender, 40));
        let mut sizes = Vec::new();
        let mut all = Vec::new();
        while let Ok(batch) = batches.try_recv() {
            let batch = batch.unwrap();
            sizes.push(batch.len());
            all.extend(batch.into_iter().flatten());
        }
        assert_eq!(sizes, [1, 2, 4, 4, 4, 4, 1]);
        assert_eq!(all, (0..20).flat_map(|i| [i; 10]).collect::<Vec<u8>>());
    }

    #[test]
    fn an_error_comes_after_the_data_before_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let items = vec![Ok(Bytes::from_static(b"a")), Err(HdfsError::ChecksumError)];
        let (sender, mut batches) = mpsc::channel(100);
        runtime.block_on(pump(futures_util::stream::iter(items), sender, 40));
        assert_eq!(batches.try_recv().unwrap().unwrap(), [Bytes::from_static(b"a")]);
        assert!(batches.try_recv().unwrap().unwrap().is_empty());
        assert!(batches.try_recv().unwrap().is_err());
    }
}
