//! The manifest and the payload files that a library binary is packed from (`spec/schema/manifest.json`).
//!
//! ```
//! use tvmspec::blob;
//! use tvmspec::examine::unpack::{pack, unpack};
//!
//! let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
//! let blob = blob::open(&file)?.remove(0).blob.expect("it has device code");
//! let bytes = blob.write()?;
//! let parts = unpack(blob)?;
//! let named = |name: &str| {
//!     let found = parts.files().find(|(own, _)| *own == name);
//!     found.map(|(_, bytes)| bytes.to_vec()).ok_or(format!("there is no {name}"))
//! };
//! assert_eq!(pack(&parts.manifest(), named)?.write()?, bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::Subject;
use super::manifest::{Manifest, NotPackable};
use crate::blob::{BLOB_75, Blob, LIBRARY, LibraryModule};
use crate::file_name::FileNames;
use crate::import_tree::ImportTree;
use crate::release::Layout;
use crate::rule::{Kind, Violation};
use serde_core::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Display;

/// A library binary in the form of its manifest. It serializes as the manifest, one module at a time: `{"layout", "modules": [{"kind",
/// "file"}, ..], "import_tree"}`. `library` and `blob` are added if they are set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnpackedLibrary<'a> {
    /// The layout of the file.
    pub layout: Layout,
    /// The modules, in the order of the library binary.
    pub modules: Vec<UnpackedModule<'a>>,
    /// The imports of each module.
    pub tree: Option<ImportTree<'a>>,
    /// The file whose library binary is replaced when the manifest is packed. [`unpack`] does not set it.
    pub library: Option<String>,
    /// The number of the library binary in that file, if it has several. [`unpack`] does not set it.
    pub blob: Option<usize>,
}

/// A module of a manifest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnpackedModule<'a> {
    /// Its kind.
    pub kind: Cow<'a, str>,
    /// The payload as it is stored, and the name of its file; `None` for the host library.
    pub file: Option<(String, Cow<'a, [u8]>)>,
}

impl UnpackedLibrary<'_> {
    /// Returns the manifest as a value.
    pub fn manifest(&self) -> Value {
        json!(self)
    }

    /// Returns the payloads as they are stored, each with the name of its file.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let files = self
            .modules
            .iter()
            .filter_map(|module| module.file.as_ref());
        files.map(|(name, payload)| (name.as_str(), &**payload))
    }
}

// Serialized directly: a library binary may have a hundred thousand modules, and as JSON values they take many times its bytes.
impl Serialize for UnpackedLibrary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("layout", self.layout.name())?;
        map.serialize_entry("modules", &self.modules)?;
        if let Some(tree) = &self.tree {
            map.serialize_entry("import_tree", &TreeForm(tree))?;
        }
        if let Some(library) = &self.library {
            map.serialize_entry("library", library)?;
        }
        if let Some(blob) = &self.blob {
            map.serialize_entry("blob", blob)?;
        }
        map.end()
    }
}

impl Serialize for UnpackedModule<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind)?;
        if let Some((name, _)) = &self.file {
            map.serialize_entry("file", name)?;
        }
        map.end()
    }
}

/// The import tree, serialized for a manifest.
struct TreeForm<'t, 'a>(&'t ImportTree<'a>);

impl Serialize for TreeForm<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("indptr", &self.0.indptr().to_vec())?;
        map.serialize_entry("indices", &self.0.indices().to_vec())?;
        map.end()
    }
}

impl Subject<'_> {
    /// Takes library binary number `index` of the file apart, into a manifest and payloads.
    ///
    /// ```
    /// use tvmspec::examine::Subject;
    ///
    /// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
    /// let parts = Subject::open("tree3-0.8.so", &file, None)?.unpack(0)?;
    /// let names: Vec<&str> = parts.files().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["1.metal", "2.opencl"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the rule that the container or the library binary breaks. Returns BLOB-75, kind missing, if there is no library binary
    /// with this number. Other errors are those of [`unpack()`].
    pub fn unpack(&self, index: usize) -> Result<UnpackedLibrary<'static>, Violation> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let units = self.units();
        let mut libraries = units.iter().filter_map(|unit| unit.library());
        let Some(library) = libraries.nth(index) else {
            let message = format!("there is no library binary {index} in {}", self.name);
            return Err(BLOB_75.rejected(Kind::Missing, message));
        };
        match library.broken {
            Some(broken) => Err(broken),
            None => unpack(library.blob.into_owned()),
        }
    }
}

/// Takes a library binary apart. [`pack`] restores the same bytes. Layout 0.2 stores no import tree, so its modules are listed as in
/// layout 0.7.
///
/// # Errors
///
/// Fails for a payload of layout 0.2 that layout 0.7 cannot hold.
pub fn unpack(blob: Blob<'_>) -> Result<UnpackedLibrary<'_>, Violation> {
    // The manifest states the layout of the file, even if the modules are listed as in another layout.
    let layout = blob.layout;
    let listed = to_manifest_form(blob)?;
    let mut names = FileNames::default();
    let modules = listed
        .modules
        .into_iter()
        .enumerate()
        .map(|(index, module)| {
            let LibraryModule::Stored(module) = module else {
                // BLOB-12: `_lib` has no payload and therefore no file.
                return UnpackedModule {
                    kind: LIBRARY.into(),
                    file: None,
                };
            };
            // BLOB-04: a kind may hold anything but NUL. The number keeps file names distinct.
            let name = names.add(&index.to_string(), &module.kind);
            UnpackedModule {
                kind: module.kind,
                file: Some((name, module.payload)),
            }
        });
    Ok(UnpackedLibrary {
        layout,
        modules: modules.collect(),
        tree: listed.tree,
        library: None,
        blob: None,
    })
}

/// Builds a library binary from a manifest: the inverse of [`unpack`]. `file` returns the bytes of a file that the manifest names.
///
/// # Errors
///
/// Fails like [`Manifest::read`] and [`Manifest::into_blob`]. Also fails for a manifest that names host code or a target library.
/// [`Manifest::read`] returns the names of these files, and modules `blob::pack` and `blob::pack::replace` write them.
pub fn pack<D: Display>(
    manifest: &Value,
    file: impl FnMut(&str) -> Result<Vec<u8>, D>,
) -> Result<Blob<'static>, NotPackable> {
    let manifest = Manifest::read(manifest, None, None, file)?;
    let code = manifest.modules.iter().any(|module| module.code.is_some());
    if code || manifest.library.is_some() {
        return Err("`code` and `library` are more than a library binary".into());
    }
    manifest.into_blob()
}

/// Converts the library into the form of a manifest, with a host library as the first module even if the layout stores none.
fn to_manifest_form(blob: Blob<'_>) -> Result<Blob<'_>, Violation> {
    // BLOB-14: this layout has no entry for the exported module. The conversion adds the host library as the first entry.
    if blob.layout == Layout::V0_2 {
        return blob.convert(Layout::V0_7);
    }
    if !blob.modules.is_empty() {
        return Ok(blob);
    }
    // BLOB-03: a count of 0 means a host library alone.
    Ok(Blob {
        modules: vec![LibraryModule::Host],
        ..blob
    })
}
