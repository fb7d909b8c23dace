//! The one error of the plugin. What the HDFS client says is translated here and nowhere else.

use std::io::ErrorKind;

use hdfs_native::HdfsError;

/// TensorFlow's status codes (`TF_Code`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    Ok = 0,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

/// What went wrong; the message begins with the path.
#[derive(Debug)]
pub struct Error {
    pub code: Code,
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

pub type Outcome<T> = Result<T, Error>;

impl Error {
    pub fn new(code: Code, path: &str, what: impl std::fmt::Display) -> Self {
        let message = format!("{path}: {what}");
        Self { code, message }
    }

    /// The translation of what the HDFS client reports about `path`.
    pub fn from_hdfs(path: &str, error: HdfsError) -> Self {
        Self::new(code_of(&error), path, text_of(error))
    }
}

fn code_of(error: &HdfsError) -> Code {
    match error {
        // The NameNode gives the class FileNotFoundException to this one too.
        HdfsError::RPCError(_, text) if text.starts_with("Path is not a file") => {
            Code::FailedPrecondition
        }
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _) => code_of_class(class),
        HdfsError::FileNotFound(_) => Code::NotFound,
        HdfsError::AlreadyExists(_) => Code::AlreadyExists,
        HdfsError::IsADirectoryError(_) => Code::FailedPrecondition,
        HdfsError::InvalidPath(_)
        | HdfsError::InvalidArgument(_)
        | HdfsError::UrlParseError(_)
        | HdfsError::XmlParseError(_) => Code::InvalidArgument,
        HdfsError::ChecksumError | HdfsError::BlocksNotFound(_) => Code::DataLoss,
        HdfsError::UnsupportedFeature(_) | HdfsError::UnsupportedErasureCodingPolicy(_) => {
            Code::Unimplemented
        }
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => {
            Code::Unauthenticated
        }
        HdfsError::IOError(io) if io.kind() == ErrorKind::TimedOut => Code::DeadlineExceeded,
        HdfsError::IOError(_) | HdfsError::DataTransferError(_) => Code::Unavailable,
        HdfsError::InternalError(_) => Code::Internal,
        _ => Code::Unknown,
    }
}

/// The code for a Java exception class of the NameNode.
fn code_of_class(class: &str) -> Code {
    match class.rsplit(['.', '$']).next().unwrap_or_default() {
        "FileNotFoundException" | "PathNotFoundException" => Code::NotFound,
        "FileAlreadyExistsException" => Code::AlreadyExists,
        "AccessControlException" | "AuthorizationException" | "SnapshotAccessControlException" => {
            Code::PermissionDenied
        }
        "InvalidToken" | "SaslException" => Code::Unauthenticated,
        "PathIsNotEmptyDirectoryException"
        | "PathIsNotDirectoryException"
        | "ParentNotDirectoryException"
        | "AlreadyBeingCreatedException"
        | "RecoveryInProgressException" => Code::FailedPrecondition,
        "SafeModeException"
        | "RetriableException"
        | "StandbyException"
        | "LeaseExpiredException" => Code::Unavailable,
        "QuotaExceededException" | "DSQuotaExceededException" | "NSQuotaExceededException" => {
            Code::ResourceExhausted
        }
        "InvalidPathException" | "IllegalArgumentException" => Code::InvalidArgument,
        "UnsupportedOperationException" => Code::Unimplemented,
        _ => Code::Unknown,
    }
}

fn text_of(error: HdfsError) -> String {
    match error {
        HdfsError::FileNotFound(_) => "no such file or directory".into(),
        HdfsError::AlreadyExists(text) => format!("already exists: {}", first_line(&text)),
        HdfsError::RPCError(class, text) | HdfsError::FatalRPCError(class, text) => {
            let class = class.rsplit('.').next().unwrap_or_default();
            format!("{class}: {}", first_line(&text))
        }
        other => other.to_string(),
    }
}

/// The NameNode's messages carry a Java stack trace from the second line on.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_begins_with_the_path_and_has_no_stack_trace() {
        let class = "org.apache.hadoop.security.AccessControlException".to_string();
        let text = "Permission denied: user=a\n\tat org.apache".to_string();
        let error = Error::from_hdfs("hdfs://nn/x", HdfsError::RPCError(class, text));
        assert_eq!(error.code, Code::PermissionDenied);
        let expected = "hdfs://nn/x: AccessControlException: Permission denied: user=a";
        assert_eq!(error.message, expected);
    }

    #[test]
    fn a_directory_in_place_of_a_file_is_not_a_missing_file() {
        let class = "java.io.FileNotFoundException".to_string();
        let text = "Path is not a file: /x".to_string();
        let error = HdfsError::RPCError(class.clone(), text);
        assert_eq!(code_of(&error), Code::FailedPrecondition);
        let text = "File does not exist: /x".to_string();
        assert_eq!(code_of(&HdfsError::RPCError(class, text)), Code::NotFound);
    }

    #[test]
    fn a_refused_connection_is_unavailable_and_a_timeout_a_deadline() {
        let refused = HdfsError::IOError(ErrorKind::ConnectionRefused.into());
        assert_eq!(code_of(&refused), Code::Unavailable);
        let late = HdfsError::IOError(ErrorKind::TimedOut.into());
        assert_eq!(code_of(&late), Code::DeadlineExceeded);
    }

    #[test]
    fn nested_java_classes_are_known_by_their_last_name() {
        let class = "org.apache.hadoop.security.token.SecretManager$InvalidToken";
        assert_eq!(code_of_class(class), Code::Unauthenticated);
        assert_eq!(code_of_class("some.Other"), Code::Unknown);
    }
}
