use super::*;
use crate::record::tests::record;
use crate::source::tests::Memory;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number for a set that no other test uses.
fn new_set() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1000);
    NEXT.fetch_add(1, Relaxed)
}

fn split(set: u64, of: u64, range: std::ops::Range<u64>) -> Split {
    let share = Share { set, epoch: 0, of };
    Split { share, start: range.start, end: range.end, path: "/data".to_string() }
}

fn open_memory(bytes: &[u8], split: Split) -> Outcome<Box<dyn ReadFile>> {
    open_source("tfy://records/x", split, Arc::new(Memory::new(bytes)))
}

/// All that TensorFlow would read: forward, until a read is short.
fn read_all(file: &dyn ReadFile, piece: usize) -> Outcome<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; piece];
    loop {
        let count = file.read(all.len() as u64, &mut buffer)?;
        all.extend(&buffer[..count]);
        if count < piece {
            return Ok(all);
        }
    }
}

/// What is counted of `set`, as its JSON object.
fn counted(set: u64) -> String {
    let json = counters::current().inputs.to_json();
    let begin = json.find(&format!(r#"{{"set":{set},"#)).unwrap_or(json.len());
    json[begin..].split_inclusive('}').next().unwrap_or_default().to_string()
}

fn expected(set: u64, records: u64, bytes: u64) -> String {
    let coverage = mark("/data", bytes).wrapping_sub(mark("/data", 0));
    format!(
        "{{\"set\":{set},\"records\":{records},\"epochs\":1,\"epoch_records\":{records},\
         \"epoch_bytes\":{bytes},\"coverage\":{coverage},\"uneven\":0}}"
    )
}

const SIZES: [usize; 12] = [10, 0, 0, 3000, 1, 250, 0, 700, 90_000, 5, 0, 40];

fn sample() -> Vec<u8> {
    SIZES.iter().enumerate().flat_map(|(i, size)| record(&vec![i as u8; *size])).collect()
}

#[test]
fn the_parts_of_a_path_are_told_apart() {
    let parsed = Split::parse("4/2/7/10-99/hdfs://nn:8020/a b/x?y").unwrap();
    let share = Share { set: 4, epoch: 2, of: 7 };
    let path = "hdfs://nn:8020/a b/x?y".to_string();
    assert_eq!(parsed, Split { share, start: 10, end: 99, path });
    assert_eq!(Split::parse("0/0/1/0-1//data/x").unwrap().path, "/data/x");
    for text in ["", "0/0/1/0-1", "0/0/0/0-1//x", "0/0/1/2-1//x", "0/-1/1/0-1//x", "0/0/1/5//x"] {
        assert_eq!(Split::parse(text), None, "{text}");
    }
}

#[test]
fn ranges_of_any_number_give_each_record_once() {
    let bytes = sample();
    let length = bytes.len() as u64;
    for of in (1..=20).chain([200]) {
        for piece in [1 << 18, 1000, 13] {
            let set = new_set();
            let mut all = Vec::new();
            for part in 0..of {
                let range = length * part / of..length * (part + 1) / of;
                let file = open_memory(&bytes, split(set, of, range)).unwrap();
                all.extend(read_all(file.as_ref(), piece).unwrap());
            }
            assert!(all == bytes, "{of} ranges in pieces of {piece}");
            assert_eq!(counted(set), expected(set, SIZES.len() as u64, length));
        }
    }
}

#[test]
fn each_pair_of_ranges_meets_without_a_gap() {
    let bytes: Vec<u8> =
        [3, 0, 20, 0, 0, 1].iter().flat_map(|size| record(&vec![7; *size])).collect();
    let length = bytes.len() as u64;
    for cut in 0..=length {
        let set = new_set();
        let halves = [0..cut, cut..length + 1000];
        let read = |range| read_all(open_memory(&bytes, split(set, 2, range)).unwrap().as_ref(), 5);
        let all: Vec<u8> = halves.into_iter().flat_map(|range| read(range).unwrap()).collect();
        assert!(all == bytes, "cut at {cut}");
        assert_eq!(counted(set), expected(set, 6, length), "cut at {cut}");
    }
}

#[test]
fn a_split_ends_once_and_only_when_all_of_it_was_read() {
    let (bytes, set) = (sample(), new_set());
    let length = bytes.len() as u64;
    let file = open_memory(&bytes, split(set, 1, 0..u64::MAX)).unwrap();
    let mut buffer = vec![0; bytes.len()];
    let most = bytes.len() - 1;
    assert_eq!(file.read(0, &mut buffer[..most]).unwrap(), most);
    assert!(counted(set).contains(r#""records":12,"epochs":0,"#), "{}", counted(set));
    for offset in [0, 50, length - 10, length - 1] {
        let left = bytes.len() - offset as usize;
        assert_eq!(file.read(offset, &mut buffer).unwrap(), left);
        assert!(buffer[..left] == bytes[offset as usize..]);
        assert_eq!(file.read(length, &mut buffer).unwrap(), 0);
    }
    assert_eq!(counted(set), expected(set, 12, length));
}

#[test]
fn the_same_split_twice_shows_in_the_sums() {
    let (bytes, set) = (sample(), new_set());
    let length = bytes.len() as u64;
    for _ in 0..2 {
        let file = open_memory(&bytes, split(set, 2, 0..length / 2)).unwrap();
        read_all(file.as_ref(), 1 << 18).unwrap();
    }
    assert!(counted(set).contains(r#""epochs":1,"#));
    let coverage = mark("/data", length).wrapping_sub(mark("/data", 0));
    assert!(!counted(set).contains(&format!(r#""coverage":{coverage},"#)), "{}", counted(set));
}

#[test]
fn what_is_passed_over_is_not_counted_as_read() {
    let (bytes, set) = (sample(), new_set());
    let file = open_memory(&bytes, split(set, 1, 0..bytes.len() as u64)).unwrap();
    let mut buffer = vec![0; bytes.len()];
    let last = bytes.len() - (16 + 40);
    assert_eq!(file.read(last as u64, &mut buffer).unwrap(), 16 + 40);
    assert!(buffer[..56] == bytes[last..]);
    assert!(counted(set).contains(r#""records":1,"epochs":0,"#), "{}", counted(set));
    assert_eq!(file.read(1 << 40, &mut buffer).unwrap(), 0);
}

#[test]
fn a_file_without_records_and_ranges_of_nothing_end_at_once() {
    for (bytes, ranges) in [(vec![], [0, 0].as_slice()), (sample(), &[0, 50, 1 << 30])] {
        let set = new_set();
        for begin in ranges {
            let range = *begin..*begin;
            let file = open_memory(&bytes, split(set, ranges.len() as u64, range)).unwrap();
            assert_eq!(read_all(file.as_ref(), 100).unwrap(), []);
        }
        assert_eq!(counted(set), expected(set, 0, 0));
    }
}

#[test]
fn what_is_corrupt_is_handed_on_and_never_counts_as_read() {
    let good = sample();
    let length = good.len() as u64;
    // The header of a record in the middle, of the first one, a tail, and a cut.
    let mut files = vec![good.clone(), good.clone(), [&good[..], b"tail"].concat()];
    files[0][16 + 10 + 16 + 16 + 9] ^= 1;
    files[1][3] ^= 1;
    files.push(good[..good.len() - 1].to_vec());
    for (number, bytes) in files.iter().enumerate() {
        for of in 1..=20 {
            let set = new_set();
            let mut wrong = 0;
            for part in 0..of {
                let range =
                    length * part / of..(length * (part + 1) / of + part / (of - 1).max(1) * 9);
                let file = open_memory(bytes, split(set, of, range)).unwrap();
                let read = read_all(file.as_ref(), 1 << 18).unwrap();
                let mut chain = Chain::at(0);
                chain.take(&read, u64::MAX);
                // TensorFlow goes along the chain as well, and would raise DataLossError.
                wrong += u32::from(chain.broken || chain.next != chain.seen);
            }
            assert!(wrong > 0, "file {number}, {of} ranges");
            assert!(!counted(set).contains(r#""epochs":1,"#), "{}", counted(set));
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_files_hold_the_records_that_were_compressed() {
    let bytes = sample();
    let halves = bytes.split_at(3333);
    let members = [gzip(halves.0), gzip(halves.1), gzip(b"")].concat();
    let streams = [zlib(halves.0), zlib(halves.1)].concat();
    for file in [gzip(&bytes), zlib(&bytes), members, streams] {
        for piece in [1 << 18, 1000, 13] {
            let set = new_set();
            let size = file.len() as u64;
            let opened = open_memory(&file, split(set, 1, 0..size)).unwrap();
            assert!(read_all(opened.as_ref(), piece).unwrap() == bytes);
            let mut buffer = [0; 100];
            for offset in [40_000, 7, 50_000] {
                assert_eq!(opened.read(offset as u64, &mut buffer).unwrap(), 100);
                assert!(buffer == bytes[offset..offset + 100]);
            }
            assert_eq!(counted(set), expected(set, 12, size));
        }
    }
}

#[test]
fn a_compressed_file_that_ends_early_is_an_error_and_no_end() {
    let bytes = sample();
    for (file, named) in [(gzip(&bytes), "gzip"), (zlib(&bytes), "zlib")] {
        for size in 2..file.len() {
            let set = new_set();
            let opened = open_memory(&file[..size], split(set, 1, 0..u64::MAX)).unwrap();
            let error = read_all(opened.as_ref(), 1000).unwrap_err();
            assert_eq!(error.code, Code::DataLoss, "{named}, {size} bytes");
            let start = format!("/data: the {named} data ");
            assert!(error.message.starts_with(&start), "{}", error.message);
            assert!(!counted(set).contains(r#""epochs":1"#));
        }
    }
}

#[test]
fn a_compressed_file_that_is_corrupt_is_an_error() {
    let bytes = sample();
    for mut file in [gzip(&bytes), zlib(&bytes)] {
        let middle = file.len() / 2;
        file[middle..middle + 40].fill(0xff);
        let opened = open_memory(&file, split(new_set(), 1, 0..u64::MAX)).unwrap();
        let error = read_all(opened.as_ref(), 1000).unwrap_err();
        assert_eq!(error.code, Code::DataLoss);
        assert!(error.message.starts_with("/data: "), "{}", error.message);
    }
}

#[test]
fn a_compressed_file_is_not_split() {
    let file = gzip(&sample());
    let size = file.len() as u64;
    let first = open_memory(&file, split(new_set(), 2, 0..size / 2)).unwrap();
    assert!(read_all(first.as_ref(), 1000).unwrap() == sample());
    let error = open_memory(&file, split(new_set(), 2, size / 2..size)).err().unwrap();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(error.message.starts_with("/data: is compressed (gzip)"), "{}", error.message);
}

#[test]
fn corrupt_records_in_a_compressed_file_are_handed_on() {
    let mut bytes = sample();
    bytes[16 + 10 + 9] ^= 1;
    let set = new_set();
    let opened = open_memory(&gzip(&bytes), split(set, 1, 0..u64::MAX)).unwrap();
    assert!(read_all(opened.as_ref(), 1000).unwrap() == bytes);
    assert!(counted(set).contains(r#""records":1,"epochs":0"#), "{}", counted(set));
}
