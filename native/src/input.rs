//! What this process has read of its share of each input, and the proof that it was all of it.
//!
//! A split is one file or a range of one; an epoch is complete when as many splits have ended as
//! belong to it. The sum over splits of H(file, end) - H(file, begin) is the same for each way to
//! cut a file without gaps and overlaps, so the sums of all tasks tell together whether each
//! byte was read exactly once.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use crate::per_process::lock;

/// Unfinished epochs beyond that belong to iterators that a program has given up.
const UNFINISHED_KEPT: usize = 64;

/// To what a split belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub set: u64,
    pub epoch: u64,
    /// How many splits make the epoch.
    pub of: u64,
}

/// What was read; sums are modulo 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub records: u64,
    pub bytes: u64,
    pub coverage: u64,
}

#[derive(Default)]
struct Unfinished {
    ended: u64,
    amount: Amount,
}

#[derive(Default)]
struct Set {
    records: u64,
    begun: u64,
    epochs: u64,
    uneven: u64,
    first: Amount,
    /// By epoch and by how many splits make it.
    unfinished: BTreeMap<(u64, u64), Unfinished>,
}

/// The inputs of a process, by number.
#[derive(Default)]
pub struct Inputs(Mutex<BTreeMap<u64, Set>>);

impl Inputs {
    /// The number of the next epoch of `set`, from 0 on.
    pub fn begin_epoch(&self, set: u64) -> u64 {
        let mut sets = lock(&self.0);
        let set = sets.entry(set).or_default();
        set.begun += 1;
        set.begun - 1
    }

    pub fn add_records(&self, set: u64, records: u64) {
        lock(&self.0).entry(set).or_default().records += records;
    }

    /// A split has been read to its end.
    pub fn end_split(&self, share: Share, amount: Amount) {
        lock(&self.0).entry(share.set).or_default().end_split(share, amount);
    }

    pub fn to_json(&self) -> String {
        let mut text = String::from("[");
        for (i, (number, set)) in lock(&self.0).iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let Set { records, epochs, uneven, first, .. } = set;
            // Writing into a String cannot fail.
            let _ = write!(
                text,
                concat!(
                    r#"{}{{"set":{},"records":{},"epochs":{},"epoch_records":{},"#,
                    r#""epoch_bytes":{},"coverage":{},"uneven":{}}}"#
                ),
                comma, number, records, epochs, first.records, first.bytes, first.coverage, uneven
            );
        }
        text.push(']');
        text
    }
}

impl Set {
    fn end_split(&mut self, share: Share, amount: Amount) {
        let key = (share.epoch, share.of);
        let epoch = self.unfinished.entry(key).or_default();
        epoch.ended += 1;
        epoch.amount = epoch.amount.plus(amount);
        if epoch.ended >= share.of {
            let amount = epoch.amount;
            self.unfinished.remove(&key);
            self.end_epoch(amount);
        } else if self.unfinished.len() > UNFINISHED_KEPT {
            self.unfinished.pop_first();
        }
    }

    fn end_epoch(&mut self, amount: Amount) {
        if self.epochs == 0 {
            self.first = amount;
        } else if self.first != amount {
            self.uneven += 1;
        }
        self.epochs += 1;
    }
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        Self {
            records: self.records.wrapping_add(other.records),
            bytes: self.bytes.wrapping_add(other.bytes),
            coverage: self.coverage.wrapping_add(other.coverage),
        }
    }
}

/// H: 64-bit FNV-1a of a file's path, a zero byte and an offset in decimal digits.
pub fn mark(path: &str, offset: u64) -> u64 {
    let digits = offset.to_string();
    let bytes = path.bytes().chain([0]).chain(digits.bytes());
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: Share = Share { set: 3, epoch: 0, of: 2 };

    fn amount(records: u64, coverage: u64) -> Amount {
        Amount { records, bytes: 10 * records, coverage }
    }

    #[test]
    fn an_epoch_is_complete_with_its_last_split() {
        let inputs = Inputs::default();
        inputs.add_records(3, 9);
        inputs.end_split(SHARE, amount(4, u64::MAX));
        assert!(inputs.to_json().contains(r#""set":3,"records":9,"epochs":0,"epoch_records":0"#));
        inputs.end_split(SHARE, amount(5, 3));
        let expected = concat!(
            r#"[{"set":3,"records":9,"epochs":1,"epoch_records":9,"#,
            r#""epoch_bytes":90,"coverage":2,"uneven":0}]"#
        );
        assert_eq!(inputs.to_json(), expected);
    }

    #[test]
    fn epochs_may_run_into_one_another_and_uneven_ones_are_counted() {
        let inputs = Inputs::default();
        for (epoch, first, second) in [(0, 1, 2), (1, 2, 1), (2, 2, 2)] {
            let share = Share { epoch, ..SHARE };
            inputs.end_split(share, amount(first, 0));
            inputs.end_split(Share { epoch: 7, of: 9, ..SHARE }, amount(1, 1));
            inputs.end_split(share, amount(second, 0));
        }
        let json = inputs.to_json();
        assert!(json.contains(r#""epochs":3,"epoch_records":3,"#), "{json}");
        assert!(json.ends_with(r#""uneven":1}]"#), "{json}");
    }

    #[test]
    fn epochs_that_nobody_ends_are_forgotten_the_oldest_first() {
        let mut set = Set::default();
        for epoch in 0..1000 {
            set.end_split(Share { epoch, ..SHARE }, amount(1, 1));
        }
        assert_eq!(set.unfinished.len(), UNFINISHED_KEPT);
        assert_eq!(set.unfinished.first_key_value().unwrap().0 .0, 1000 - 64);
        set.end_split(Share { epoch: 999, ..SHARE }, amount(1, 1));
        assert_eq!((set.epochs, set.first), (1, amount(2, 2)));
    }

    #[test]
    fn each_set_numbers_its_own_epochs() {
        let inputs = Inputs::default();
        let numbers: Vec<u64> = [0, 0, 1, 0].map(|set| inputs.begin_epoch(set)).into();
        assert_eq!(numbers, [0, 1, 0, 2]);
        let json = inputs.to_json();
        assert!(json.starts_with(r#"[{"set":0,"records":0,"epochs":0,"#), "{json}");
        assert!(json.contains(r#"},{"set":1,"#), "{json}");
    }

    #[test]
    fn marks_are_fnv_1a() {
        // Computed elsewhere, by the definition.
        assert_eq!(mark("", 0), 0x0832_9807_b4eb_8b1d);
        assert_eq!(mark("a", 17), 0xac4d_3a82_0e24_7308);
        assert_eq!(mark("hdfs://nn:8020/ü", 123_456_789_012), 0x2656_e577_666c_a3de);
    }
}
