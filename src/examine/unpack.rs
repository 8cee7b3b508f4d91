//! What a library binary is packed from: a manifest and a file for each payload (`spec/schema/manifest.json`).
//!
//! ```
//! use tvmspec::blob;
//! use tvmspec::examine::unpack::{pack, unpack};
//!
//! let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
//! let bytes = blob::open(&file)?.remove(0).blob.write()?;
//! let parts = unpack(blob::open(&file)?.remove(0).blob)?;
//! let named = |name: &str| {
//!     let found = parts.files.iter().find(|(own, _)| own == name);
//!     found.map(|(_, bytes)| bytes.to_vec()).ok_or(format!("there is no {name}"))
//! };
//! assert_eq!(pack(&parts.manifest, named)?.write()?, bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::manifest::{Manifest, NotPackable};
use crate::blob::{Blob, LIBRARY, StoredModule};
use crate::file_name::FileNames;
use crate::release::Layout;
use crate::rule::Violation;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Display;

/// A manifest, and the files that it names.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnpackedLibrary<'a> {
    /// The manifest: `{"layout", "modules": [{"kind", "file"}, ..], "import_tree"}`.
    pub manifest: Value,
    /// The payloads as they are stored, each with the name of its file.
    pub files: Vec<(String, Cow<'a, [u8]>)>,
}

/// Takes a library binary apart; [`pack`] makes the same bytes of it again. Layout 0.2 has no import tree to store: it is
/// listed as layout 0.7 has it.
///
/// # Errors
///
/// A payload of layout 0.2 that layout 0.7 cannot hold.
pub fn unpack(blob: Blob<'_>) -> Result<UnpackedLibrary<'_>, Violation> {
    // The manifest states the layout of the file, also where the modules are listed as another layout has them.
    let layout = blob.layout;
    let listed = as_listed(blob)?;
    let (mut modules, mut files) = (Vec::new(), Vec::new());
    let mut names = FileNames::default();
    let tree = listed
        .tree
        .as_ref()
        .map(|tree| json!({"indptr": tree.indptr().to_vec(), "indices": tree.indices().to_vec()}));
    for (index, module) in listed.modules.into_iter().enumerate() {
        // BLOB-12: `_lib` has no payload, and so no file.
        let Some(payload) = module.payload else {
            modules.push(json!({"kind": module.kind}));
            continue;
        };
        // BLOB-04: a kind may hold anything but NUL. The number keeps names apart.
        let name = names.add(&index.to_string(), &module.kind);
        modules.push(json!({"kind": module.kind, "file": name}));
        files.push((name, payload));
    }
    let mut manifest = json!({"layout": layout.name(), "modules": modules});
    if let (Some(tree), Value::Object(members)) = (tree, &mut manifest) {
        members.insert("import_tree".to_owned(), tree);
    }
    Ok(UnpackedLibrary { manifest, files })
}

/// Puts a library binary together: the inverse of [`unpack`], of any manifest. `file` returns the bytes of a file that the manifest
/// names.
///
/// # Errors
///
/// Those of [`Manifest::read`] and of [`Manifest::into_blob`]. A manifest with host code or with a library to put it into, of which a
/// library binary is a part: [`Manifest::read`] returns their names, and modules `blob::pack` and `blob::pack::replace` write them.
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

/// The library in the form of a manifest: with a host library on top, also where the layout has none to store.
fn as_listed(blob: Blob<'_>) -> Result<Blob<'_>, Violation> {
    // BLOB-14: the exported module is no entry there; a conversion puts the host library on top of the entries.
    if blob.layout == Layout::V0_2 {
        return blob.convert(Layout::V0_7);
    }
    if !blob.modules.is_empty() {
        return Ok(blob);
    }
    // BLOB-03: a count of 0 is a lone host library.
    let library = StoredModule {
        kind: LIBRARY.into(),
        payload: None,
        offset: 0,
    };
    Ok(Blob {
        modules: vec![library],
        ..blob
    })
}
