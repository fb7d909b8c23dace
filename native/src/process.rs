//! What this process holds to speak to HDFS: one runtime and one client for each file system.

use std::collections::HashMap;
use std::future::Future;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdfs_native::{Client, ClientBuilder};
use tokio::runtime::Runtime;

use crate::fork;
use crate::per_process::{lock, PerProcess};
use crate::settings::Settings;
use crate::site::Site;
use crate::status::{Code, Error, Outcome};
use crate::uri::Uri;

pub struct Process {
    pub settings: Settings,
    runtime: Runtime,
    clients: Mutex<HashMap<String, Arc<Client>>>,
}

static PROCESS: PerProcess<Process> = PerProcess::new();

/// The state of this process, made at the first use of HDFS in it.
pub fn current() -> Outcome<&'static Process> {
    PROCESS.get(Process::start)
}

/// A name, and the client that serves it.
pub struct Target {
    pub process: &'static Process,
    pub client: Arc<Client>,
    pub uri: Uri,
}

impl Target {
    /// What stands at `name`. The first use of a file system builds its client.
    pub fn of(name: &str) -> Outcome<Self> {
        let uri = Uri::parse(name)?;
        let process = current()?;
        let client = process.client(&uri)?;
        Ok(Self { process, client, uri })
    }

    /// Waits for what the client is asked, and translates its error.
    pub fn wait<T>(&self, request: impl Future<Output = hdfs_native::Result<T>>) -> Outcome<T> {
        let answer = self.process.block_on(request);
        answer.map_err(|error| Error::from_hdfs(&self.uri.text(), error))
    }
}

impl Process {
    fn start() -> Outcome<Self> {
        let settings = Settings::load()?;
        fork::leave_parent_behind();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(settings.threads)
            .thread_name("tfy-hdfs")
            .enable_all()
            .build()
            .map_err(|error| Error::new(Code::ResourceExhausted, "hdfs:// runtime", error))?;
        fork::remember(&runtime);
        Ok(Self { settings, runtime, clients: Mutex::default() })
    }

    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Forgets the clients: the next use reads the configuration and connects anew.
    pub fn forget_clients(&self) {
        lock(&self.clients).clear();
    }

    fn client(&self, uri: &Uri) -> Outcome<Arc<Client>> {
        if let Some(client) = lock(&self.clients).get(&uri.root) {
            return Ok(Arc::clone(client));
        }
        // Built outside the lock: an unreachable NameNode must not hold up the others.
        let client = Arc::new(self.build_client(uri)?);
        Ok(Arc::clone(lock(&self.clients).entry(uri.root.clone()).or_insert(client)))
    }

    fn build_client(&self, uri: &Uri) -> Outcome<Client> {
        let site = Site::load();
        let root = site.resolve(&uri.root);
        let slash = if root.ends_with("://") { "/" } else { "" };
        let mut builder = ClientBuilder::new()
            .with_io_runtime(self.runtime.handle().clone())
            .with_url(format!("{root}{slash}"));
        if let Some(address) = Uri::host_and_port(&root) {
            probe(uri, address, site.connect_timeout())?;
            builder = builder.with_config(site.short_retries());
        }
        builder.build().map_err(|error| Error::from_hdfs(&uri.text(), error))
    }
}

/// Finds out whether packets to the NameNode get lost: the client itself connects without a
/// limit, which takes minutes. A refused connection is left to the client, which tries again.
fn probe(uri: &Uri, (host, port): (&str, u16), limit: Duration) -> Outcome<()> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = (host, port).to_socket_addrs().ok().and_then(|mut all| all.next());
    let Some(address) = address else {
        let what = format!("the NameNode's host name {host:?} is unknown");
        return Err(Error::new(Code::Unavailable, &uri.text(), what));
    };
    match TcpStream::connect_timeout(&address, limit) {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            let what = format!("no answer from the NameNode {address} within {limit:?}");
            Err(Error::new(Code::Unavailable, &uri.text(), what))
        }
        _ => Ok(()),
    }
}
