//! Names as TensorFlow passes them: `scheme://authority/path`, never percent-encoded.

use crate::status::{Code, Error, Outcome};

/// A name taken apart; `path` is absolute and without empty, `.` or `..` parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Uri {
    /// `hdfs://host:port`, `hdfs://nameservice`, or `hdfs://` for the default file system.
    pub root: String,
    pub path: String,
}

impl Uri {
    pub fn parse(text: &str) -> Outcome<Self> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Error::new(Code::InvalidArgument, text, "not a URI"));
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Ok(Self { root: format!("{scheme}://{authority}"), path: clean(path) })
    }

    /// The port where the authority is `host:port`: one NameNode and not a nameservice.
    pub fn host_and_port(root: &str) -> Option<(&str, u16)> {
        let (_, authority) = root.split_once("://")?;
        let (host, port) = authority.rsplit_once(':')?;
        Some((host, port.parse().ok()?))
    }

    pub fn text(&self) -> String {
        format!("{}{}", self.root, self.path)
    }
}

/// The path with its parts resolved by their text alone, as TensorFlow does it for local files.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A child's path; `parent` is absolute.
pub fn join(parent: &str, name: &str) -> String {
    format!("{}/{name}", parent.trim_end_matches('/'))
}

/// The last part of a path.
pub fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, String) {
        let uri = Uri::parse(text).unwrap();
        (uri.root, uri.path)
    }

    #[test]
    fn root_and_path_are_told_apart() {
        let expected = ("hdfs://nn:8020".to_string(), "/a/b".to_string());
        assert_eq!(parse("hdfs://nn:8020/a/b"), expected);
        assert_eq!(parse("hdfs://nn:8020//a/./c/../b/"), expected);
        assert_eq!(parse("hdfs:///a"), ("hdfs://".into(), "/a".into()));
        assert_eq!(parse("viewfs://c"), ("viewfs://c".into(), "/".into()));
        assert_eq!(parse("hdfs://nn/../.."), ("hdfs://nn".into(), "/".into()));
    }

    #[test]
    fn names_are_taken_as_they_are() {
        let path = "/a b/ü%20#x?y=[1]";
        assert_eq!(parse(&format!("hdfs://nn{path}")).1, path);
        assert_eq!(Uri::parse("hdfs://nn/ü").unwrap().text(), "hdfs://nn/ü");
    }

    #[test]
    fn a_plain_path_is_refused() {
        assert_eq!(Uri::parse("/tmp/x").unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn only_a_port_means_a_single_namenode() {
        assert_eq!(Uri::host_and_port("hdfs://nn:8020"), Some(("nn", 8020)));
        assert_eq!(Uri::host_and_port("hdfs://nameservice"), None);
        assert_eq!(Uri::host_and_port("hdfs://"), None);
    }

    #[test]
    fn children_are_joined_without_doubled_slashes() {
        assert_eq!(join("/", "a"), "/a");
        assert_eq!(join("/a", "b"), "/a/b");
        assert_eq!(last_part("/a/b"), "b");
    }
}
