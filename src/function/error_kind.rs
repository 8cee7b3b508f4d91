//! The kinds of errors, which every language of the boundary has as names (FUN-04).

use std::fmt;

/// What an error is: in C and C++ a name, in Python the class that is raised.
///
/// A name that is none of these, such as a user's own exception class, crosses unchanged as [`ErrorKind::Other`]:
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
    /// `ConnectionError`: a connection that is gone, or is refused.
    Connection,
    /// `EnvErrorAlreadySet`: the frontend holds the error itself (FUN-01).
    Frontend,
    /// `IndexError`: a position that is not in a sequence.
    Index,
    /// `InternalError`: a panic or an exception without a kind of its own (FUN-07), or a broken promise of the runtime.
    Internal,
    /// `KeyError`: a key that is not in a map.
    Key,
    /// `MemoryError`: there is no memory for it.
    Memory,
    /// `OSError`: the system refuses, such as to open a file.
    Os,
    /// `RuntimeError`: what no other kind fits.
    Runtime,
    /// `TimeoutError`: a peer took longer than its deadline.
    Timeout,
    /// `TVMError`: the failure of a callback of 0.2 to 0.20 whose text names no kind (FUN-18).
    Tvm,
    /// `TypeError`: a value of another type than is wanted.
    Type,
    /// `ValueError`: a value of the right type that is none of the possible ones.
    Value,
    /// Any other name. [`ErrorKind::from`] never returns this for a name of the above.
    Other(&'a str),
}

impl<'a> ErrorKind<'a> {
    /// The name that crosses the boundary.
    pub const fn as_str(self) -> &'a str {
        match self {
            ErrorKind::Attribute => "AttributeError",
            ErrorKind::Connection => "ConnectionError",
            // FUN-01: the one name that makes a call return -2, and leaves the slot of the thread empty.
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

/// Kinds are the same when their names are: a name in [`ErrorKind::Other`] too.
impl PartialEq for ErrorKind<'_> {
    fn eq(&self, other: &ErrorKind<'_>) -> bool {
        self.as_str() == other.as_str()
    }
}

impl std::hash::Hash for ErrorKind<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Of the name, as equality is: `Other` with a known name is equal to its variant.
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
