//! A forked child and its parent's connections.
//!
//! The HDFS client keeps connections to DataNodes for three seconds in a table of its own, which
//! a child inherits. They stay the parent's: used here they would mix up both processes' data;
//! dropped here they would be shut down, and taken out of the epoll instance that both processes
//! share, so that the parent waits in vain. So a child first replaces its descriptors of all of
//! them, which the parent does not notice, and then reads only when the table is out of date.

use std::fs;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
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
    let Ok(null) = fs::File::open("/dev/null") else {
        return;
    };
    for descriptor in &epoll.descriptors {
        let path = format!("/proc/self/fdinfo/{descriptor}");
        let targets = targets(&fs::read_to_string(path).unwrap_or_default());
        let connections = targets.iter().filter(|target| target.is_open_here());
        let connections = connections.map(|target| target.descriptor);
        for taken in connections.filter(|target| is_network_socket(*target)) {
            unsafe { libc::dup2(null.as_raw_fd(), taken) };
        }
        if !targets.is_empty() {
            unsafe { libc::dup2(null.as_raw_fd(), *descriptor) };
        }
    }
}

/// Something that an epoll instance watches.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    descriptor: RawFd,
    inode: u64,
}

impl Target {
    /// Whether the descriptor means the same here as in the parent, which may have opened more.
    fn is_open_here(&self) -> bool {
        let path = format!("/proc/self/fd/{}", self.descriptor);
        fs::metadata(path).is_ok_and(|metadata| metadata.ino() == self.inode)
    }
}

fn is_network_socket(descriptor: RawFd) -> bool {
    let mut domain: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_DOMAIN);
    let value = (&raw mut domain).cast();
    let told = unsafe { libc::getsockopt(descriptor, level, name, value, &mut size) } == 0;
    told && [libc::AF_INET, libc::AF_INET6].contains(&domain)
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
        if let (Ok(descriptor), true) =
            (name, targets(&info).iter().any(|target| target.descriptor == watched))
        {
            found.push(descriptor);
        }
    }
    Ok(found)
}

/// What an epoll instance watches, by the text of its `/proc/self/fdinfo` entry.
fn targets(info: &str) -> Vec<Target> {
    let rows = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    let target = |row: &str| {
        let inode = row.split_whitespace().find_map(|word| word.strip_prefix("ino:"))?;
        Some(Target {
            descriptor: row.split_whitespace().next()?.parse().ok()?,
            inode: u64::from_str_radix(inode, 16).ok()?,
        })
    };
    rows.filter_map(target).collect()
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
        let row = "tfd:       12 events:       19 data:     5  pos:0 ino:1a sdev:8";
        let expected = Target { descriptor: 12, inode: 26 };
        assert_eq!(targets(&format!("pos:\t0\nflags:\t02\n{row}\n")), [expected]);
        assert_eq!(targets("pos:\t12\n"), []);
    }

    #[test]
    fn a_descriptor_that_means_something_else_is_left_alone() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let descriptor = listener.as_raw_fd();
        let inode = fs::metadata(format!("/proc/self/fd/{descriptor}")).unwrap().ino();
        assert!(Target { descriptor, inode }.is_open_here());
        assert!(!Target { descriptor, inode: inode + 1 }.is_open_here());
    }

    #[test]
    fn only_network_sockets_are_taken_for_connections() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (local, _peer) = UnixStream::pair().unwrap();
        assert!(is_network_socket(listener.as_raw_fd()));
        assert!(!is_network_socket(local.as_raw_fd()));
        assert!(!is_network_socket(fs::File::open("/dev/null").unwrap().as_raw_fd()));
    }
}
