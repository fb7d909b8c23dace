//! A forked child and its parent's connections.
//!
//! The HDFS client keeps connections to DataNodes for three seconds in a table of its own, which
//! a child inherits. The child must not use them, since the parent does, and must not drop them
//! either while they are in the parent's epoll instance: both processes share that one, so they
//! would be taken from the parent too, which then waits for data in vain. So a child first cuts
//! itself off from its parent's epoll instance, and does not read before the table is out of date.

use std::fs;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Runtime;

use crate::per_process::lock;

/// The client's `DATANODE_CACHE_EXPIRY`, and a little more.
const KEPT_MS: u64 = 3_000 + 100;

/// The epoll descriptors of the runtime of process `pid`.
struct Epoll {
    pid: u32,
    descriptors: Vec<RawFd>,
}

static EPOLL: Mutex<Epoll> = Mutex::new(Epoll { pid: 0, descriptors: Vec::new() });
/// Wall clock in milliseconds, as the client measures it.
static LAST_READ: AtomicU64 = AtomicU64::new(0);
static READ_FROM: AtomicU64 = AtomicU64::new(0);

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}

/// A read has ended just now, and may have left a connection in the client's table.
pub fn note_read() {
    LAST_READ.store(now_ms(), Relaxed);
}

/// In a forked child: waits until its parent's connections are out of date, 3 s at most.
pub fn wait_for_parents_connections() {
    let from = READ_FROM.load(Relaxed);
    if from > 0 {
        let left = from.saturating_sub(now_ms()).min(KEPT_MS);
        std::thread::sleep(Duration::from_millis(left));
        READ_FROM.store(0, Relaxed);
    }
}

/// Remembers which descriptors belong to the runtime of this process.
pub fn remember(runtime: &Runtime) {
    let descriptors = epoll_descriptors(runtime).unwrap_or_default();
    *lock(&EPOLL) = Epoll { pid: std::process::id(), descriptors };
}

/// In a forked child, before it makes a runtime: cuts it off from its parent's.
pub fn leave_parent_behind() {
    let epoll = lock(&EPOLL);
    if epoll.pid == 0 || epoll.pid == std::process::id() {
        return;
    }
    READ_FROM.store(LAST_READ.load(Relaxed) + KEPT_MS, Relaxed);
    if let Ok(null) = fs::File::open("/dev/null") {
        for descriptor in &epoll.descriptors {
            // Only this process' descriptor is replaced. The parent's runtime has no thread here.
            unsafe { libc::dup2(null.as_raw_fd(), *descriptor) };
        }
    }
}

/// The epoll descriptors that watch a socket which was given to `runtime`.
fn epoll_descriptors(runtime: &Runtime) -> std::io::Result<Vec<RawFd>> {
    let (socket, _peer) = UnixStream::pair()?;
    socket.set_nonblocking(true)?;
    let watched = socket.as_raw_fd();
    let _context = runtime.enter();
    let _registered = tokio::net::UnixStream::from_std(socket)?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo")?.flatten() {
        let name = entry.file_name().to_string_lossy().parse();
        let info = fs::read_to_string(entry.path()).unwrap_or_default();
        if let (Ok(descriptor), true) = (name, watches(&info, watched)) {
            found.push(descriptor);
        }
    }
    Ok(found)
}

/// Whether the text of `/proc/self/fdinfo/<epoll>` names `descriptor`.
fn watches(info: &str, descriptor: RawFd) -> bool {
    let targets = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    let mut numbers = targets.filter_map(|rest| rest.split_whitespace().next()?.parse().ok());
    numbers.any(|number: RawFd| number == descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoll_of_a_runtime_is_found() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let found = epoll_descriptors(&runtime).unwrap();
        assert!(!found.is_empty());
        for descriptor in found {
            let link = fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
            assert_eq!(link.to_str(), Some("anon_inode:[eventpoll]"));
        }
    }

    #[test]
    fn targets_are_read_from_fdinfo() {
        let info = "pos:\t0\nflags:\t02\ntfd:       12 events:       19 data: 5  pos:0 ino:1\n";
        assert!(watches(info, 12));
        assert!(!watches(info, 1));
        assert!(!watches("pos:\t12\n", 12));
    }
}
