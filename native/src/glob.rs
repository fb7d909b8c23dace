//! Names that match a pattern. TensorFlow has its own way, but that one takes a NameNode that
//! cannot be reached for an empty directory, and asks about each child.

use std::ffi::CString;

use hdfs_native::client::FileStatus;
use hdfs_native::HdfsError;

use crate::process::Target;
use crate::status::{Error, Outcome};
use crate::uri::{join, last_part};

/// The full names of what matches `pattern`, sorted. Nothing there is no match, not an error.
pub fn matching(pattern: &str) -> Outcome<Vec<String>> {
    let target = Target::of(pattern)?;
    let parts: Vec<_> = target.uri.path.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = vec!["/".to_string()];
    // Names that were put together and not seen: they may not exist.
    let mut unseen = false;
    for (i, part) in parts.iter().enumerate() {
        if !has_wildcard(part) {
            found.iter_mut().for_each(|path| *path = join(path, part));
            unseen = true;
            continue;
        }
        let only_directories = i + 1 < parts.len();
        let mut next = Vec::new();
        for directory in &found {
            let children = children(&target, directory)?;
            let children = children.iter().filter(|child| child.isdir || !only_directories);
            let names = children.map(|child| last_part(&child.path));
            let names = names.filter(|name| matches(part, name));
            next.extend(names.map(|name| join(directory, name)));
        }
        (found, unseen) = (next, false);
    }
    if unseen {
        found = existing(&target, found)?;
    }
    found.sort();
    Ok(found.into_iter().map(|path| format!("{}{path}", target.uri.root)).collect())
}

/// What stands in a directory; nothing where there is none.
fn children(target: &Target, directory: &str) -> Outcome<Vec<FileStatus>> {
    match target.process.block_on(target.client.list_status(directory, false)) {
        Ok(children) => Ok(children.into_iter().filter(|child| child.path != directory).collect()),
        Err(error) => missing_or(target, error).map(|()| Vec::new()),
    }
}

fn existing(target: &Target, paths: Vec<String>) -> Outcome<Vec<String>> {
    let mut there = Vec::new();
    for path in paths {
        match target.process.block_on(target.client.get_file_info(&path)) {
            Ok(_) => there.push(path),
            Err(error) => missing_or(target, error)?,
        }
    }
    Ok(there)
}

fn missing_or(target: &Target, error: HdfsError) -> Outcome<()> {
    match error {
        HdfsError::FileNotFound(_) => Ok(()),
        other => Err(Error::from_hdfs(&target.uri.text(), other)),
    }
}

fn has_wildcard(part: &str) -> bool {
    part.contains(['*', '?', '[', '\\'])
}

/// The same function of the C library as TensorFlow uses for local files.
fn matches(pattern: &str, name: &str) -> bool {
    let (Ok(pattern), Ok(name)) = (CString::new(pattern), CString::new(name)) else {
        return false;
    };
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), libc::FNM_PATHNAME) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_for_local_files() {
        assert!(matches("*.tfrecord", "part-0.tfrecord"));
        assert!(!matches("*.tfrecord", "part-0.tfrecord.gz"));
        assert!(matches("part-?", "part-1") && !matches("part-?", "part-10"));
        assert!(matches("[a-c]x", "bx") && !matches("[^a-c]x", "bx"));
        assert!(matches("a\\*b", "a*b") && !matches("a\\*b", "axb"));
        assert!(matches("*", "ü #%.x") && matches("{a,b}", "{a,b}"));
    }

    #[test]
    fn only_special_characters_make_a_pattern() {
        assert!(has_wildcard("a*") && has_wildcard("a\\b") && has_wildcard("[a]"));
        assert!(!has_wildcard("a b#%{c}"));
    }
}
