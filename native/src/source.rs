//! The file that records are read from: of HDFS or of this machine.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use crate::reader::HdfsReader;
use crate::scheme::ReadFile;
use crate::status::{Code, Error, Outcome};

/// A file whose length does not change. Buffers to be filled lie within it.
pub trait Source: Send + Sync {
    fn length(&self) -> u64;

    /// Fills the buffer; reads in order are quick.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()>;

    /// Fills the buffer with something that lies aside from what is read in order.
    fn probe(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
        self.read(offset, buffer)
    }

    /// From now on reads are in order from `next` on, and hardly beyond `until`.
    fn expect(&self, _next: u64, _until: u64) {}
}

/// Opens `hdfs://…`, `viewfs://…`, `file:///…` or an absolute path.
pub fn open(path: &str) -> Outcome<Box<dyn Source>> {
    if path.starts_with("hdfs://") || path.starts_with("viewfs://") {
        return Ok(Box::new(HdfsReader::open(path)?));
    }
    let local = path.strip_prefix("file://").unwrap_or(path);
    if local.starts_with('/') {
        return Ok(Box::new(LocalFile::open(local)?));
    }
    let what = "records are read from hdfs://, viewfs://, file:/// or an absolute path";
    Err(Error::new(Code::InvalidArgument, path, what))
}

impl Source for HdfsReader {
    fn length(&self) -> u64 {
        HdfsReader::length(self)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
        ReadFile::read(self, offset, buffer).map(drop)
    }

    fn probe(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
        HdfsReader::probe(self, offset, buffer)
    }

    fn expect(&self, next: u64, until: u64) {
        HdfsReader::expect(self, next, until);
    }
}

struct LocalFile {
    path: String,
    file: File,
    length: u64,
}

impl LocalFile {
    fn open(path: &str) -> Outcome<Self> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| from_io(path, &error))?;
        match metadata.is_file() {
            true => Ok(Self { path: path.to_string(), file, length: metadata.len() }),
            false => Err(Error::new(Code::FailedPrecondition, path, "not a file")),
        }
    }
}

impl Source for LocalFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| from_io(&self.path, &error))
    }
}

fn from_io(path: &str, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::PermissionDenied => Code::PermissionDenied,
        // The file has become shorter.
        ErrorKind::UnexpectedEof => Code::DataLoss,
        _ => Code::Unavailable,
    };
    Error::new(code, path, error)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// A file in memory that knows how much was read of it.
    #[derive(Default)]
    pub struct Memory {
        pub bytes: Vec<u8>,
        pub read: AtomicU64,
    }

    impl Memory {
        pub fn new(bytes: &[u8]) -> Self {
            Self { bytes: bytes.to_vec(), read: AtomicU64::new(0) }
        }
    }

    impl Source for Memory {
        fn length(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<()> {
            let offset = offset as usize;
            buffer.copy_from_slice(&self.bytes[offset..offset + buffer.len()]);
            self.read.fetch_add(buffer.len() as u64, Relaxed);
            Ok(())
        }
    }

    #[test]
    fn local_files_are_found_by_path_and_by_uri() {
        let path = std::env::temp_dir().join(format!("tfy-source-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let path = path.to_str().unwrap();
        for name in [path.to_string(), format!("file://{path}")] {
            let source = open(&name).unwrap();
            let mut buffer = [0; 3];
            source.read(4, &mut buffer).unwrap();
            assert_eq!((source.length(), &buffer), (10, b"456"));
            assert_eq!(source.read(9, &mut buffer).unwrap_err().code, Code::DataLoss);
        }
        std::fs::remove_file(path).unwrap();
        assert_eq!(open(path).err().unwrap().code, Code::NotFound);
        assert_eq!(open("/tmp").err().unwrap().code, Code::FailedPrecondition);
        for name in ["", "relative", "s3://a/b", "file://relative"] {
            let error = open(name).err().unwrap();
            assert_eq!(error.code, Code::InvalidArgument, "{name}");
        }
    }
}
