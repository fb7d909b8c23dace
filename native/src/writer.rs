//! Writing a file of HDFS: what TensorFlow appends in small pieces is gathered first.

use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::Mutex;
use std::task::ready;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hdfs_native::file::FileWriter;
use hdfs_native::{HdfsError, WriteOptions};

use crate::counters;
use crate::per_process::lock;
use crate::process::{Process, Target};
use crate::scheme::WriteFile;
use crate::status::{Code, Error, Outcome};

/// How long a DataNode gets to tell the NameNode that it has a block. See `patiently`.
const REPORT_TIME: Duration = Duration::from_millis(10);

struct Open {
    file: FileWriter,
    gathered: BytesMut,
    position: u64,
    /// Data was sent since the last sync.
    unsynced: bool,
    /// Data was sent since the file was opened.
    written: bool,
}

pub struct HdfsWriter {
    name: String,
    pid: u32,
    process: &'static Process,
    /// None once it is closed.
    open: Mutex<Option<Open>>,
}

impl HdfsWriter {
    /// A new file, in place of one that is there; its directory has to exist.
    pub fn create(path: &str) -> Outcome<Self> {
        let target = Target::of(path)?;
        let options = WriteOptions::default().overwrite(true).create_parent(false);
        let file = target.wait(target.client.create(&target.uri.path, options))?;
        Ok(Self::new(path, target.process, file, 0))
    }

    /// The end of a file, of a new one where there is none.
    pub fn append_to(path: &str) -> Outcome<Self> {
        let target = Target::of(path)?;
        let there = target.process.block_on(target.client.get_file_info(&target.uri.path));
        let position = match there {
            Ok(status) => status.length as u64,
            Err(HdfsError::FileNotFound(_)) => return Self::create(path),
            Err(error) => return Err(Error::from_hdfs(path, error)),
        };
        let file = target.wait(target.client.append(&target.uri.path))?;
        Ok(Self::new(path, target.process, file, position))
    }

    fn new(path: &str, process: &'static Process, file: FileWriter, position: u64) -> Self {
        let gathered = BytesMut::new();
        let open = Open { file, gathered, position, unsynced: false, written: false };
        let (name, pid) = (path.to_string(), std::process::id());
        Self { name, pid, process, open: Mutex::new(Some(open)) }
    }

    /// Appends without counting.
    pub fn write(&self, data: &[u8]) -> Outcome<()> {
        let most = self.process.settings.write_buffer_bytes;
        self.with_open(|open| {
            if open.gathered.len() + data.len() > most {
                self.send_gathered(open)?;
            }
            if data.len() >= most {
                self.send(open, Bytes::copy_from_slice(data))?;
            } else {
                open.gathered.extend_from_slice(data);
            }
            open.position += data.len() as u64;
            Ok(())
        })
    }

    fn with_open<T>(&self, operation: impl FnOnce(&mut Open) -> Outcome<T>) -> Outcome<T> {
        match lock(&self.open).as_mut() {
            Some(open) => operation(open),
            None => Err(Error::new(Code::FailedPrecondition, &self.name, "the file is closed")),
        }
    }

    fn wait<T>(&self, request: impl Future<Output = hdfs_native::Result<T>>) -> Outcome<T> {
        let answer = self.process.block_on(request);
        answer.map_err(|error| Error::from_hdfs(&self.name, error))
    }

    fn send_gathered(&self, open: &mut Open) -> Outcome<()> {
        match open.gathered.is_empty() {
            true => Ok(()),
            false => {
                let data = open.gathered.split().freeze();
                self.send(open, data)
            }
        }
    }

    fn send(&self, open: &mut Open, data: Bytes) -> Outcome<()> {
        self.wait(open.file.write_bytes(data))?;
        (open.unsynced, open.written) = (true, true);
        Ok(())
    }
}

impl WriteFile for HdfsWriter {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&self, data: &[u8]) -> Outcome<()> {
        self.write(data)?;
        counters::current().add_write(data.len());
        Ok(())
    }

    fn tell(&self) -> Outcome<u64> {
        self.with_open(|open| Ok(open.position))
    }

    fn sync(&self) -> Outcome<()> {
        self.with_open(|open| {
            self.send_gathered(open)?;
            if open.unsynced {
                self.wait(open.file.hsync())?;
                open.unsynced = false;
            }
            Ok(())
        })
    }

    /// An erasure-coded file cannot be synced: what was written shows when it is closed.
    fn flush(&self) -> Outcome<()> {
        match self.sync() {
            Err(error) if error.code == Code::Unimplemented => Ok(()),
            outcome => outcome,
        }
    }

    fn close(&self) -> Outcome<()> {
        let Some(mut open) = lock(&self.open).take() else {
            return Ok(());
        };
        let sent = self.send_gathered(&mut open);
        let closed = match open.written {
            true => self.wait(patiently(open.file.close())),
            false => self.wait(open.file.close()),
        };
        sent.and(closed)
    }

    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }
}

/// Runs `future`, and lets `REPORT_TIME` pass each time that it could go on.
///
/// The client asks the NameNode to complete a file the moment the last DataNode has acknowledged
/// its data. Mostly the DataNode has not reported the block yet, the NameNode says "not yet", and
/// the client sleeps for half a second, a constant of its own. If it gets to see the
/// acknowledgement a little later, the NameNode says yes at once. Only the time of asking changes:
/// where the report takes longer the client sleeps as it always did.
async fn patiently<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut pause = None;
    let mut started = false;
    poll_fn(|context| {
        if started {
            let sleep = pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(REPORT_TIME)));
            ready!(sleep.as_mut().poll(context));
            pause = None;
        }
        started = true;
        future.as_mut().poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tokio::sync::oneshot;

    #[test]
    fn what_is_ready_later_is_seen_later() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            let start = Instant::now();
            tokio::spawn(async move { sender.send(7) });
            assert_eq!(patiently(receiver).await, Ok(7));
            assert!(start.elapsed() >= REPORT_TIME);
        });
    }

    #[test]
    fn what_is_ready_now_is_not_held_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(patiently(std::future::ready(3))), 3);
    }
}
