//! The operations of `hdfs://` and `viewfs://`. HDFS itself is more lenient than TensorFlow wants
//! (it makes directories that are there and deletes directories where files were meant).

use hdfs_native::client::FileStatus;
use hdfs_native::HdfsError;

use crate::glob;
use crate::process::{self, Target};
use crate::reader::{copy_all, HdfsReader};
use crate::scheme::{ReadFile, Scheme, Stat, WriteFile};
use crate::site::Site;
use crate::status::{Code, Error, Outcome};
use crate::uri::{last_part, Uri};
use crate::writer::HdfsWriter;

const DIRECTORY_MODE: u32 = 0o755;

pub struct Hdfs;

impl Scheme for Hdfs {
    const OFFERS: &'static str = "files and directories of HDFS";

    fn open(path: &str) -> Outcome<Box<dyn ReadFile>> {
        Ok(Box::new(HdfsReader::open(path)?))
    }

    fn create(path: &str) -> Outcome<Box<dyn WriteFile>> {
        Ok(Box::new(HdfsWriter::create(path)?))
    }

    fn append_to(path: &str) -> Outcome<Box<dyn WriteFile>> {
        Ok(Box::new(HdfsWriter::append_to(path)?))
    }

    fn make_directory(path: &str) -> Outcome<()> {
        let target = Target::of(path)?;
        match status_of(&target) {
            Ok(_) => Err(Error::new(Code::AlreadyExists, path, "already exists")),
            Err(error) if error.code == Code::NotFound => make(&target, false),
            Err(error) => Err(error),
        }
    }

    fn make_directories(path: &str) -> Outcome<()> {
        make(&Target::of(path)?, true)
    }

    fn delete_file(path: &str) -> Outcome<()> {
        let target = Target::of(path)?;
        match status_of(&target)?.isdir {
            true => Err(Error::new(Code::FailedPrecondition, path, "is a directory")),
            false => delete(&target, false),
        }
    }

    fn delete_directory(path: &str) -> Outcome<()> {
        let target = Target::of(path)?;
        match status_of(&target)?.isdir {
            true => delete(&target, false),
            false => Err(Error::new(Code::FailedPrecondition, path, "not a directory")),
        }
    }

    fn delete_tree(path: &str) -> Outcome<()> {
        delete(&Target::of(path)?, true)
    }

    fn rename(from: &str, to: &str) -> Outcome<()> {
        let (source, to_uri) = (Target::of(from)?, Uri::parse(to)?);
        let site = Site::load();
        if site.resolve(&source.uri.root) != site.resolve(&to_uri.root) {
            let what = format!("cannot be renamed to {to}: another file system");
            return Err(Error::new(Code::Unimplemented, from, what));
        }
        if source.uri.path == to_uri.path {
            // HDFS calls it an error; for a local file nothing happens.
            return status_of(&source).map(drop);
        }
        let renamed = source.client.rename(&source.uri.path, &to_uri.path, true);
        let subject = format!("{from} -> {to}");
        source.process.block_on(renamed).map_err(|error| Error::from_hdfs(&subject, error))
    }

    fn copy(from: &str, to: &str) -> Outcome<()> {
        let to = match Self::stat(to) {
            Ok(stat) if stat.is_directory => format!("{to}/{}", last_part(&Uri::parse(from)?.path)),
            _ => to.to_string(),
        };
        if Uri::parse(from)? == Uri::parse(&to)? {
            return Self::stat(from).map(drop);
        }
        // The source first: where it is missing the target has to stay as it is.
        let source = HdfsReader::open(from)?;
        let target = HdfsWriter::create(&to)?;
        copy_all(&source, |data| target.write(data))?;
        target.close()
    }

    fn stat(path: &str) -> Outcome<Stat> {
        let status = status_of(&Target::of(path)?)?;
        Ok(Stat {
            length: status.length as u64,
            modified_ms: status.modification_time,
            is_directory: status.isdir,
        })
    }

    fn list(path: &str) -> Outcome<Vec<String>> {
        let target = Target::of(path)?;
        let children = target.wait(target.client.list_status(&target.uri.path, false))?;
        if let [only] = children.as_slice() {
            // HDFS lists a file as itself.
            if !only.isdir && only.path == target.uri.path {
                return Err(Error::new(Code::FailedPrecondition, path, "not a directory"));
            }
        }
        Ok(children.iter().map(|child| last_part(&child.path).to_string()).collect())
    }

    fn glob(pattern: &str) -> Outcome<Vec<String>> {
        glob::matching(pattern)
    }

    /// TensorFlow's own translation would lose scheme and host.
    fn translate(path: &str) -> String {
        Uri::parse(path).map_or_else(|_| path.to_string(), |uri| uri.text())
    }

    fn flush_caches() {
        if let Ok(process) = process::current() {
            process.forget_clients();
        }
    }
}

fn status_of(target: &Target) -> Outcome<FileStatus> {
    target.wait(target.client.get_file_info(&target.uri.path))
}

fn make(target: &Target, parents: bool) -> Outcome<()> {
    target.wait(target.client.mkdirs(&target.uri.path, DIRECTORY_MODE, parents))
}

fn delete(target: &Target, recursive: bool) -> Outcome<()> {
    match target.wait(target.client.delete(&target.uri.path, recursive))? {
        true => Ok(()),
        false => {
            let missing = HdfsError::FileNotFound(String::new());
            Err(Error::from_hdfs(&target.uri.text(), missing))
        }
    }
}
