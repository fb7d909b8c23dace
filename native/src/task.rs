//! `tfy://`: the door between a TensorFlow graph and the process that it runs in. Under
//! ParameterServerStrategy a dataset's graph is made on the chief and runs in every worker's
//! built-in server, so only an operation in the graph can learn where it runs, or count there.
//!
//! - reading `tfy://task/index` gives this process' TFY_TASK_INDEX;
//! - reading `tfy://epoch/<set>` gives the number of the set's next epoch in this process: each
//!   time it is opened another one, from 0 on, in 20 digits;
//! - `tfy://records/…` holds the records of a part of a file (records.rs);
//! - writing a whole number to `tfy://count/<name>` adds it to the count `<name>`.
//!
//! What follows a `?` is ignored, but for records, whose files may have one: a graph puts something there that changes, and so keeps
//! TensorFlow from taking the first answer for a constant.

use std::sync::Mutex;

use crate::counters;
use crate::per_process::lock;
use crate::records::{self, Split};
use crate::scheme::{ReadFile, Scheme, Stat, WriteFile};
use crate::status::{Code, Error, Outcome};

const INDEX_VARIABLE: &str = "TFY_TASK_INDEX";

pub struct Task;

enum Door {
    Index,
    Epoch(u64),
    Records(Split),
    Count(String),
}

fn door(path: &str) -> Outcome<Door> {
    let wrong = |what: &str| Err(Error::new(Code::InvalidArgument, path, what));
    let Some((_, rest)) = path.split_once("://") else {
        return wrong("not a URI");
    };
    if let Some(split) = rest.strip_prefix("records/") {
        return match Split::parse(split) {
            Some(split) => Ok(Door::Records(split)),
            None => wrong("not tfy://records/<set>/<epoch>/<of>/<start>-<end>/<path>"),
        };
    }
    let plain = rest.split('?').next().unwrap_or_default();
    match plain.split_once('/') {
        Some(("task", "index")) => Ok(Door::Index),
        Some(("epoch", set)) => match set.parse() {
            Ok(set) => Ok(Door::Epoch(set)),
            Err(_) => wrong("the set of an epoch is a whole number from 0 on"),
        },
        Some(("count", name)) if counters::is_name(name) => Ok(Door::Count(name.to_string())),
        Some(("count", _)) => wrong("a count's name consists of letters, digits and ._-:/"),
        _ => Err(Error::new(Code::NotFound, path, format!("there is only {}", Task::OFFERS))),
    }
}

fn index_text(path: &str) -> Outcome<String> {
    std::env::var(INDEX_VARIABLE).map_err(|_| {
        let what = format!("the environment variable {INDEX_VARIABLE} of this process is not set");
        Error::new(Code::NotFound, path, what)
    })
}

fn epoch_text(epoch: u64) -> String {
    format!("{epoch:020}")
}

fn only_written<T>(path: &str) -> Outcome<T> {
    Err(Error::new(Code::Unimplemented, path, "counts can only be written"))
}

impl Scheme for Task {
    const OFFERS: &'static str =
        "tfy://task/index, tfy://epoch/<set> and tfy://records/… to read, \
         and tfy://count/<name> to write";

    fn open(path: &str) -> Outcome<Box<dyn ReadFile>> {
        let text = match door(path)? {
            Door::Index => index_text(path)?,
            Door::Epoch(set) => epoch_text(counters::current().inputs.begin_epoch(set)),
            Door::Records(split) => return records::open(path, split),
            Door::Count(_) => return only_written(path),
        };
        Ok(Box::new(Text { name: path.to_string(), text }))
    }

    fn create(path: &str) -> Outcome<Box<dyn WriteFile>> {
        match door(path)? {
            Door::Count(count) => {
                let text = Mutex::new(Some(Vec::new()));
                Ok(Box::new(Count { name: path.to_string(), count, text }))
            }
            _ => Err(Error::new(Code::Unimplemented, path, "can only be read")),
        }
    }

    /// TensorFlow makes the directory of what it writes.
    fn make_directories(_path: &str) -> Outcome<()> {
        Ok(())
    }

    /// TensorFlow asks for the size of what it reads, but not of records.
    fn stat(path: &str) -> Outcome<Stat> {
        let length = match door(path)? {
            Door::Index => index_text(path)?.len(),
            Door::Epoch(_) => epoch_text(0).len(),
            Door::Records(_) => {
                let what = "how many bytes of records there are is only known by reading them";
                return Err(Error::new(Code::Unimplemented, path, what));
            }
            Door::Count(_) => return only_written(path),
        };
        Ok(Stat { length: length as u64, modified_ms: 0, is_directory: false })
    }
}

struct Text {
    name: String,
    text: String,
}

impl ReadFile for Text {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Outcome<usize> {
        let rest = self.text.as_bytes().get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

struct Count {
    name: String,
    count: String,
    /// None once it is closed.
    text: Mutex<Option<Vec<u8>>>,
}

impl WriteFile for Count {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&self, data: &[u8]) -> Outcome<()> {
        match lock(&self.text).as_mut() {
            Some(text) => text.extend_from_slice(data),
            None => return Err(Error::new(Code::FailedPrecondition, &self.name, "is closed")),
        }
        Ok(())
    }

    fn tell(&self) -> Outcome<u64> {
        Ok(lock(&self.text).as_ref().map_or(0, Vec::len) as u64)
    }

    fn sync(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(&self) -> Outcome<()> {
        let Some(text) = lock(&self.text).take() else {
            return Ok(());
        };
        let text = String::from_utf8_lossy(&text);
        let Ok(amount) = text.trim().parse() else {
            let what = format!("{text:?} is not a whole number");
            return Err(Error::new(Code::InvalidArgument, &self.name, what));
        };
        counters::current().add_count(&self.count, amount);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &str, text: &str) -> Outcome<()> {
        let file = Task::create(path)?;
        file.append(text.as_bytes())?;
        file.close()?;
        file.close()
    }

    #[test]
    fn a_number_is_added_once_when_the_file_is_closed() {
        write("tfy://count/test/records?step=1", "3").unwrap();
        write("tfy://count/test/records?step=2", " 4\n").unwrap();
        let json = counters::current().to_json();
        assert!(json.contains(r#""test/records":7"#), "{json}");
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        let error = write("tfy://count/x", "many").unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert_eq!(error.message, r#"tfy://count/x: "many" is not a whole number"#);
    }

    #[test]
    fn nothing_else_is_there() {
        assert_eq!(Task::create("tfy://other").err().unwrap().code, Code::NotFound);
        assert_eq!(Task::create("tfy://count/a b").err().unwrap().code, Code::InvalidArgument);
        assert_eq!(Task::create("tfy://task/index").err().unwrap().code, Code::Unimplemented);
        assert_eq!(Task::open("tfy://count/x").err().unwrap().code, Code::Unimplemented);
        let error = Task::list("tfy://count").unwrap_err();
        assert_eq!(error.code, Code::Unimplemented);
        assert!(error.message.contains("tfy://task/index"), "{}", error.message);
    }

    #[test]
    fn text_is_read_from_any_offset() {
        let file = Text { name: "x".into(), text: "12".into() };
        let mut buffer = [0; 4];
        assert_eq!(file.read(0, &mut buffer).unwrap(), 2);
        assert_eq!(&buffer[..2], b"12");
        assert_eq!(file.read(1, &mut buffer[..1]).unwrap(), 1);
        assert_eq!(file.read(9, &mut buffer).unwrap(), 0);
    }
}
