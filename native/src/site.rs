//! What the user's Hadoop configuration says, where the plugin has to know it: the HDFS client
//! reads the same files itself, but does not tell which settings it found.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use roxmltree::{Document, Node, ParsingOptions};

const ATTEMPTS: &str = "dfs.client.failover.max.attempts";
const DEFAULT_FS: &str = "fs.defaultFS";
const CONNECT_TIMEOUT: &str = "ipc.client.connect.timeout";
/// With the client's own default (15 attempts, waiting up to 15 s each) a NameNode that refuses
/// connections takes three minutes to be reported. Two more attempts take 1.5 to 4.5 s.
const FEW_ATTEMPTS: &str = "2";
const SHORT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Site {
    settings: HashMap<String, String>,
}

impl Site {
    /// Reads `core-site.xml` and `hdfs-site.xml` where the HDFS client looks for them. A file that
    /// is not XML is skipped: the client itself reports it.
    pub fn load() -> Self {
        let mut site = Self::default();
        for name in ["core-site.xml", "hdfs-site.xml"] {
            let path = folder().map(|folder| folder.join(name));
            if let Some(text) = path.and_then(|path| std::fs::read_to_string(path).ok()) {
                site.settings.extend(parse(&text));
            }
        }
        site
    }

    /// `root`, or the default file system where `root` names none.
    pub fn resolve(&self, root: &str) -> String {
        let default = self.settings.get(DEFAULT_FS).map(|text| text.trim_end_matches('/'));
        match default {
            Some(default) if root.ends_with("://") && default.starts_with(root) => default.into(),
            _ => root.into(),
        }
    }

    /// Settings to add for one NameNode without a partner; what the user has set stays.
    ///
    /// A nameservice keeps the client's default, since a failover takes its time.
    pub fn short_retries(&self) -> Option<(&'static str, &'static str)> {
        (!self.settings.contains_key(ATTEMPTS)).then_some((ATTEMPTS, FEW_ATTEMPTS))
    }

    /// How long the first connection to a NameNode may take.
    pub fn connect_timeout(&self) -> Duration {
        let set = self.settings.get(CONNECT_TIMEOUT).and_then(|text| text.trim().parse().ok());
        set.map_or(SHORT_CONNECT_TIMEOUT, Duration::from_millis)
    }
}

fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("HADOOP_CONF_DIR") {
        return Some(folder.into());
    }
    std::env::var_os("HADOOP_HOME").map(|home| Path::new(&home).join("etc/hadoop"))
}

fn parse(text: &str) -> HashMap<String, String> {
    let options = ParsingOptions { allow_dtd: true, ..Default::default() };
    let Ok(document) = Document::parse_with_options(text, options) else {
        return HashMap::new();
    };
    let properties = document.descendants().filter(|node| node.has_tag_name("property"));
    properties.filter_map(|node| Some((child(node, "name")?, child(node, "value")?))).collect()
}

fn child(property: Node, name: &str) -> Option<String> {
    let node = property.children().find(|node| node.has_tag_name(name))?;
    node.text().map(|text| text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str, value: &str) -> Site {
        let text = format!(
            "<?xml version=\"1.0\"?><configuration><!-- x --><property><name>{name}</name>\
             <value> {value} </value></property></configuration>"
        );
        Site { settings: parse(&text) }
    }

    #[test]
    fn the_users_retries_win() {
        assert_eq!(site("a", "b").short_retries(), Some((ATTEMPTS, FEW_ATTEMPTS)));
        assert_eq!(site(ATTEMPTS, "30").short_retries(), None);
    }

    #[test]
    fn the_users_connect_timeout_wins() {
        assert_eq!(site(CONNECT_TIMEOUT, "250").connect_timeout(), Duration::from_millis(250));
        assert_eq!(site("a", "b").connect_timeout(), SHORT_CONNECT_TIMEOUT);
    }

    #[test]
    fn the_default_file_system_stands_in_where_none_is_named() {
        let site = site(DEFAULT_FS, "hdfs://nn:8020/");
        assert_eq!(site.resolve("hdfs://"), "hdfs://nn:8020");
        assert_eq!(site.resolve("viewfs://"), "viewfs://");
        assert_eq!(site.resolve("hdfs://other"), "hdfs://other");
    }

    #[test]
    fn a_broken_file_sets_nothing() {
        assert!(parse("<configuration>").is_empty());
    }
}
