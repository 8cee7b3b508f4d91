//! One module of a library binary: the host library, or a module with a payload.

use super::{BLOB_17, LIBRARY};
use crate::payload::{self, Payload};
use crate::release::Layout;
use crate::rule::{Kind, Tolerated, Violation};
use crate::wire::Cursor;
use std::borrow::Cow;

/// A module of a [`Blob`](super::Blob).
///
/// ```
/// use tvmspec::blob::{self, LibraryModule};
///
/// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
/// for module in blob::open(&file)?.remove(0).modules() {
///     match module {
///         LibraryModule::Host => println!("the code of the library itself"),
///         LibraryModule::Stored(module) => {
///             let payload = module.decode()?.value;
///             println!("{}: {} functions", module.kind, payload.functions().count());
///         }
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryModule<'a> {
    /// The code of the library itself, the entry `_lib`. It has no payload.
    Host,
    /// A module of another kind, whose payload the library stores.
    Stored(StoredModule<'a>),
}

/// A module that a library binary stores as a kind and a payload.
///
/// ```
/// use tvmspec::blob::StoredModule;
/// use tvmspec::release::Layout;
///
/// let source = StoredModule::new("acme", b"any bytes".as_slice(), Layout::V0_22);
/// assert_eq!((&*source.kind, source.payload.len()), ("acme", 9));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredModule<'a> {
    /// The kind, for example `cuda` (`type_key` before 0.22).
    pub kind: Cow<'a, str>,
    /// The bytes of the payload, without a length.
    pub payload: Cow<'a, [u8]>,
    /// The layout of the payload and of its blob. Some kinds have different fields in each layout.
    pub layout: Layout,
    /// Offset of the first payload byte from the start of the blob; 0 for a module that was created without a blob.
    pub offset: u64,
}

impl<'a> LibraryModule<'a> {
    /// Returns the kind; `_lib` for the host library.
    pub fn kind(&self) -> &str {
        match self {
            LibraryModule::Host => LIBRARY,
            LibraryModule::Stored(module) => &module.kind,
        }
    }

    /// Returns whether this is the host library.
    pub fn is_host(&self) -> bool {
        matches!(self, LibraryModule::Host)
    }

    /// Returns the bytes of the payload; `None` for the host library.
    pub fn payload(&self) -> Option<&[u8]> {
        self.stored().map(|module| &*module.payload)
    }

    /// Returns the stored module; `None` for the host library.
    pub fn stored(&self) -> Option<&StoredModule<'a>> {
        match self {
            LibraryModule::Host => None,
            LibraryModule::Stored(module) => Some(module),
        }
    }

    /// Returns the stored module for editing; `None` for the host library.
    pub fn stored_mut(&mut self) -> Option<&mut StoredModule<'a>> {
        match self {
            LibraryModule::Host => None,
            LibraryModule::Stored(module) => Some(module),
        }
    }

    /// Returns the module with all borrowed bytes copied.
    pub fn into_owned(self) -> LibraryModule<'static> {
        match self {
            LibraryModule::Host => LibraryModule::Host,
            LibraryModule::Stored(module) => LibraryModule::Stored(module.into_owned()),
        }
    }

    /// Decodes the payload; `None` for the host library, and for a payload that breaks a rule.
    #[cfg(feature = "inspect")]
    pub(crate) fn decoded(&self) -> Option<Payload<'_>> {
        self.stored()?.decode().ok().map(|decoded| decoded.value)
    }
}

impl<'a> From<StoredModule<'a>> for LibraryModule<'a> {
    fn from(module: StoredModule<'a>) -> LibraryModule<'a> {
        LibraryModule::Stored(module)
    }
}

impl<'a> StoredModule<'a> {
    /// Creates a module without a blob. `payload` must have the form of this kind in `layout`.
    pub fn new(
        kind: impl Into<Cow<'a, str>>,
        payload: impl Into<Cow<'a, [u8]>>,
        layout: Layout,
    ) -> StoredModule<'a> {
        StoredModule {
            kind: kind.into(),
            payload: payload.into(),
            layout,
            offset: 0,
        }
    }

    /// Decodes the payload.
    ///
    /// # Errors
    ///
    /// Returns the first broken rule, at an offset from the start of the blob.
    pub fn decode(&self) -> Result<Tolerated<Payload<'_>>, Violation> {
        let mut cursor = Cursor::new(&self.payload).with_base(self.offset);
        Tolerated::read(|findings| payload::read(&self.kind, self.layout, &mut cursor, findings))
    }

    /// Returns the module with all borrowed bytes copied.
    pub fn into_owned(self) -> StoredModule<'static> {
        StoredModule {
            kind: Cow::Owned(self.kind.into_owned()),
            payload: Cow::Owned(self.payload.into_owned()),
            layout: self.layout,
            offset: self.offset,
        }
    }

    /// Returns the bytes that a writer of `layout` stores after the kind (BLOB-17).
    pub(super) fn stored_bytes(&self, layout: Layout) -> Result<&[u8], Violation> {
        if self.kind == LIBRARY {
            return Err(BLOB_17.rejected(Kind::Malformed, "`_lib` has no payload in any layout"));
        }
        if self.layout != layout {
            let message = format!(
                "the payload of module `{}` has layout {}, and the library binary layout {layout}: convert one of them",
                self.kind, self.layout
            );
            return Err(BLOB_17.rejected(Kind::Unsupported, message));
        }
        Ok(&self.payload)
    }
}
