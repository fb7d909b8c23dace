//! Settings from the environment, read once in a process.

use crate::status::{Code, Error, Outcome};

#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    /// How far a sequential reader runs ahead; 0 turns it off.
    pub read_ahead_bytes: usize,
    /// What is gathered before it is sent to a DataNode.
    pub write_buffer_bytes: usize,
    /// Threads of the client's runtime.
    pub threads: usize,
}

impl Settings {
    pub fn load() -> Outcome<Self> {
        Self::parse(|name| std::env::var(name).ok())
    }

    fn parse(value: impl Fn(&str) -> Option<String>) -> Outcome<Self> {
        let number = |name: &str, default: usize, least: usize| match value(name) {
            None => Ok(default),
            Some(text) => match text.trim().parse::<usize>() {
                Ok(number) if number >= least => Ok(number),
                _ => {
                    let what = format!("{text:?} is not a whole number from {least} on");
                    Err(Error::new(Code::InvalidArgument, name, what))
                }
            },
        };
        Ok(Self {
            read_ahead_bytes: number("TFY_HDFS_READ_AHEAD_BYTES", 4 << 20, 0)?,
            write_buffer_bytes: number("TFY_HDFS_WRITE_BUFFER_BYTES", 1 << 20, 1)?,
            threads: number("TFY_HDFS_THREADS", 2, 1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_hold_where_nothing_is_set() {
        let settings = Settings::parse(|_| None).unwrap();
        let expected =
            Settings { read_ahead_bytes: 4 << 20, write_buffer_bytes: 1 << 20, threads: 2 };
        assert_eq!(settings, expected);
    }

    #[test]
    fn a_wrong_value_is_refused_by_name() {
        for text in ["0", "-1", "two", ""] {
            let set = |name: &str| (name == "TFY_HDFS_THREADS").then(|| text.to_string());
            let error = Settings::parse(set).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument);
            assert!(error.message.starts_with("TFY_HDFS_THREADS: "), "{}", error.message);
        }
    }

    #[test]
    fn no_read_ahead_is_a_choice() {
        let set = |name: &str| (name == "TFY_HDFS_READ_AHEAD_BYTES").then(|| "0".to_string());
        assert_eq!(Settings::parse(set).unwrap().read_ahead_bytes, 0);
    }
}
