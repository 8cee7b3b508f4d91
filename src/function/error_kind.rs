//! The kinds of errors, which every language at the boundary knows by name (FUN-04).

use std::fmt;

/// The kind of an error: a name in C and C++, and the raised class in Python.
///
/// Any other name, such as that of a user's exception class, crosses unchanged as [`ErrorKind::Other`]:
///
/// ```
/// use tvmspec::function::{Error, ErrorKind};
///
/// assert_eq!(Error::new(ErrorKind::Value, "not 3").kind().as_str(), "ValueError");
/// assert_eq!(Error::new("ValueError", "not 3").kind(), ErrorKind::Value);
/// assert_eq!(Error::new("example.Busy", "later").kind(), ErrorKind::Other("example.Busy"));
/// ```
#[derive(Clone, Copy, Debug, Eq)]
#[non_exhaustive]
pub enum ErrorKind<'a> {
    /// `AttributeError`: an object has no such field or method.
    Attribute,
    /// `ConnectionError`: a connection that is closed or refused.
    Connection,
    /// `EnvErrorAlreadySet`: the frontend has stored the error (FUN-01).
    Frontend,
    /// `IndexError`: a position outside a sequence.
    Index,
    /// `InternalError`: a panic, an exception without a kind (FUN-07), or a broken promise of the runtime.
    Internal,
    /// `KeyError`: a key that is not in a map.
    Key,
    /// `MemoryError`: there is not enough memory.
    Memory,
    /// `OSError`: the system refuses an operation, such as opening a file.
    Os,
    /// `RuntimeError`: an error that fits no other kind.
    Runtime,
    /// `TimeoutError`: a peer took longer than its deadline.
    Timeout,
    /// `TVMError`: the failure of a callback of 0.2 to 0.20 whose text names no kind (FUN-18).
    Tvm,
    /// `TypeError`: a value of an unexpected type.
    Type,
    /// `ValueError`: a value of the right type that is not allowed.
    Value,
    /// Any other name. [`ErrorKind::from`] never returns this for a name above.
    Other(&'a str),
}

impl<'a> ErrorKind<'a> {
    /// Returns the name that crosses the boundary.
    pub const fn as_str(self) -> &'a str {
        match self {
            ErrorKind::Attribute => "AttributeError",
            ErrorKind::Connection => "ConnectionError",
            // FUN-01: callers recognize by this name that the frontend has stored the error.
            ErrorKind::Frontend => "EnvErrorAlreadySet",
            ErrorKind::Index => "IndexError",
            ErrorKind::Internal => "InternalError",
            ErrorKind::Key => "KeyError",
            ErrorKind::Memory => "MemoryError",
            ErrorKind::Os => "OSError",
            ErrorKind::Runtime => "RuntimeError",
            ErrorKind::Timeout => "TimeoutError",
            ErrorKind::Tvm => "TVMError",
            ErrorKind::Type => "TypeError",
            ErrorKind::Value => "ValueError",
            ErrorKind::Other(name) => name,
        }
    }
}

impl<'a> From<&'a str> for ErrorKind<'a> {
    fn from(name: &'a str) -> ErrorKind<'a> {
        match name {
            "AttributeError" => ErrorKind::Attribute,
            "ConnectionError" => ErrorKind::Connection,
            "EnvErrorAlreadySet" => ErrorKind::Frontend,
            "IndexError" => ErrorKind::Index,
            "InternalError" => ErrorKind::Internal,
            "KeyError" => ErrorKind::Key,
            "MemoryError" => ErrorKind::Memory,
            "OSError" => ErrorKind::Os,
            "RuntimeError" => ErrorKind::Runtime,
            "TimeoutError" => ErrorKind::Timeout,
            "TVMError" => ErrorKind::Tvm,
            "TypeError" => ErrorKind::Type,
            "ValueError" => ErrorKind::Value,
            other => ErrorKind::Other(other),
        }
    }
}

impl fmt::Display for ErrorKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Kinds are equal if their names are equal, also for a name in [`ErrorKind::Other`].
impl PartialEq for ErrorKind<'_> {
    fn eq(&self, other: &ErrorKind<'_>) -> bool {
        self.as_str() == other.as_str()
    }
}

impl std::hash::Hash for ErrorKind<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Hashes the name, as equality compares it: `Other` with a known name equals the variant.
        self.as_str().hash(state);
    }
}

impl PartialEq<str> for ErrorKind<'_> {
    fn eq(&self, name: &str) -> bool {
        self.as_str() == name
    }
}

impl PartialEq<&str> for ErrorKind<'_> {
    fn eq(&self, name: &&str) -> bool {
        self.as_str() == *name
    }
}
