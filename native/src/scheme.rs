//! What a URI scheme offers to TensorFlow. An operation that a scheme leaves out is refused.

use crate::status::{Code, Error, Outcome};

/// A file open for reading; used by several threads at once.
pub trait ReadFile: Send + Sync {
    fn name(&self) -> &str;

    /// The number of bytes read, less than asked for at the end of the file only.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<usize>;

    /// Whether this process opened it, and may take it down.
    fn is_ours(&self) -> bool {
        true
    }
}

/// A file open for writing; used by one thread at a time.
pub trait WriteFile: Send + Sync {
    fn name(&self) -> &str;
    fn append(&self, data: &[u8]) -> Outcome<()>;
    fn tell(&self) -> Outcome<u64>;
    fn sync(&self) -> Outcome<()>;

    /// May be called again, with no effect.
    fn close(&self) -> Outcome<()>;

    /// Makes what was written visible where that is possible.
    fn flush(&self) -> Outcome<()> {
        self.sync()
    }

    /// Whether this process opened it, and may take it down.
    fn is_ours(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy)]
pub struct Stat {
    pub length: u64,
    pub modified_ms: u64,
    pub is_directory: bool,
}

fn refused<T, S: Scheme + ?Sized>(operation: &str, path: &str) -> Outcome<T> {
    let what = format!("{operation} is not possible here: {}", S::OFFERS);
    Err(Error::new(Code::Unimplemented, path, what))
}

pub trait Scheme {
    /// What it is for, to be named where it refuses.
    const OFFERS: &'static str;

    fn open(path: &str) -> Outcome<Box<dyn ReadFile>> {
        refused::<_, Self>("reading", path)
    }
    fn create(path: &str) -> Outcome<Box<dyn WriteFile>> {
        refused::<_, Self>("writing", path)
    }
    fn append_to(path: &str) -> Outcome<Box<dyn WriteFile>> {
        refused::<_, Self>("appending", path)
    }
    fn make_directory(path: &str) -> Outcome<()> {
        refused::<_, Self>("making a directory", path)
    }
    fn make_directories(path: &str) -> Outcome<()> {
        refused::<_, Self>("making directories", path)
    }
    fn delete_file(path: &str) -> Outcome<()> {
        refused::<_, Self>("deleting a file", path)
    }
    fn delete_directory(path: &str) -> Outcome<()> {
        refused::<_, Self>("deleting a directory", path)
    }
    fn delete_tree(path: &str) -> Outcome<()> {
        refused::<_, Self>("deleting a tree", path)
    }
    fn rename(from: &str, _to: &str) -> Outcome<()> {
        refused::<_, Self>("renaming", from)
    }
    fn copy(from: &str, _to: &str) -> Outcome<()> {
        refused::<_, Self>("copying", from)
    }
    fn stat(path: &str) -> Outcome<Stat> {
        refused::<_, Self>("stat", path)
    }
    fn list(path: &str) -> Outcome<Vec<String>> {
        refused::<_, Self>("listing", path)
    }
    fn glob(pattern: &str) -> Outcome<Vec<String>> {
        refused::<_, Self>("matching a pattern", pattern)
    }
    fn translate(path: &str) -> String {
        path.to_string()
    }
    fn flush_caches() {}
}
