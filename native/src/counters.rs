//! What this process has read, written and counted. A forked child starts at zero.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;

use crate::input::Inputs;
use crate::per_process::{lock, PerProcess};

#[derive(Default)]
pub struct Counters {
    bytes_read: AtomicU64,
    reads: AtomicU64,
    bytes_written: AtomicU64,
    writes: AtomicU64,
    counts: Mutex<BTreeMap<String, i64>>,
    pub inputs: Inputs,
}

static COUNTERS: PerProcess<Counters> = PerProcess::new();

/// The counters of this process.
pub fn current() -> &'static Counters {
    match COUNTERS.get(|| Ok::<_, Infallible>(Counters::default())) {
        Ok(counters) => counters,
        Err(never) => match never {},
    }
}

impl Counters {
    /// One read that handed `bytes` to TensorFlow.
    pub fn add_read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Relaxed);
        self.reads.fetch_add(1, Relaxed);
    }

    /// One write that took `bytes` from TensorFlow.
    pub fn add_write(&self, bytes: usize) {
        self.bytes_written.fetch_add(bytes as u64, Relaxed);
        self.writes.fetch_add(1, Relaxed);
    }

    /// Adds to the count `name`, which `is_name` accepts.
    pub fn add_count(&self, name: &str, amount: i64) {
        let mut counts = lock(&self.counts);
        let count = counts.entry(name.to_string()).or_default();
        *count = count.saturating_add(amount);
    }

    pub fn to_json(&self) -> String {
        let mut text = format!(
            r#"{{"bytes_read":{},"reads":{},"bytes_written":{},"writes":{},"counts":{{"#,
            self.bytes_read.load(Relaxed),
            self.reads.load(Relaxed),
            self.bytes_written.load(Relaxed),
            self.writes.load(Relaxed),
        );
        for (i, (name, count)) in lock(&self.counts).iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            // Writing into a String cannot fail.
            let _ = write!(text, r#"{comma}"{name}":{count}"#);
        }
        // Writing into a String cannot fail.
        let _ = write!(text, r#"}},"input":{}}}"#, self.inputs.to_json());
        text
    }
}

/// Names that need no escaping, neither in a path nor in JSON.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:/".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_stand_in_the_json_text() {
        let counters = Counters::default();
        let empty =
            r#"{"bytes_read":0,"reads":0,"bytes_written":0,"writes":0,"counts":{},"input":[]}"#;
        assert_eq!(counters.to_json(), empty);
        counters.add_read(7);
        counters.add_read(3);
        counters.add_write(5);
        counters.add_count("b", 2);
        counters.add_count("a", -1);
        counters.add_count("b", 2);
        let full = concat!(
            r#"{"bytes_read":10,"reads":2,"bytes_written":5,"writes":1,"#,
            r#""counts":{"a":-1,"b":4},"input":[]}"#
        );
        assert_eq!(counters.to_json(), full);
    }

    #[test]
    fn names_that_would_need_escaping_are_not_names() {
        assert!(is_name("worker:0/records_seen-1.x"));
        for name in ["", "a b", "a\"b", "ü", "a\\b"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
