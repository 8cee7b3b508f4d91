//! A device module as files: its code, and beside it a side file that says how its functions are launched.
//!
//! | file | content | rule |
//! |---|---|---|
//! | `x.cl`, `x.ptx`, `x.hsaco`, ... | the code of the payload as it is | PAY-23 |
//! | `x.vulkan` | u32 magic, then the shaders of the payload | PAY-29 |
//! | `x.tvm_meta.json` | a version, and the functions by name | PAY-24 to PAY-27 |
//!
//! Nothing here opens a file: callers pass names and bytes.
//!
//! ```
//! use tvmspec::payload::file::{self, ModuleFile};
//! use tvmspec::rule::Findings;
//!
//! let code = std::fs::read("golden/payload/files/addone-0.16.cl")?;
//! let side = std::fs::read("golden/payload/files/addone-0.16.tvm_meta.json")?;
//! assert_eq!(file::side_file_name("addone-0.16.cl"), "addone-0.16.tvm_meta.json");
//! let module = ModuleFile::read("addone-0.16.cl", "", &code, Some(&side), &mut Findings::default())?;
//! let (name, kernel) = module.payload.functions().next().expect("a kernel");
//! assert_eq!((module.payload.kind(), name, kernel.arg_types.len()), ("opencl", "addone_kernel", 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod formats;
mod side_file;

pub use formats::{FileFormat, file_format, file_formats, host_format};
pub use side_file::SideFile;

use super::{
    Field, FieldShape, KnownPayload, PAY_23, PAY_28, PAY_29, Payload, PayloadForm, kind_info,
};
use crate::release::{Layout, Release, Releases};
use crate::rule::{Findings, Kind, Violation};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// What a `.vulkan` file begins with (PAY-29).
const VULKAN_MAGIC: u32 = 0x0270_0027;

/// A device module that was read from its files.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleFile<'a> {
    /// The row of its extension.
    pub format: &'static FileFormat,
    /// What a library stores of the same module.
    pub payload: Payload<'a>,
    /// The layout that stores the payload without a loss: 0.21 where a function has argument tags (PAY-27), else 0.7.
    pub layout: Layout,
    /// Releases whose readers reject the side file, and why.
    pub rejected: Vec<(Releases, String)>,
}

impl<'a> ModuleFile<'a> {
    /// Reads the module whose file is called `name` and holds `code`; `side` is the content of its side file. `format` takes the
    /// place of the extension where it is not empty, as in the loaders of all releases.
    ///
    /// # Errors
    ///
    /// PAY-28 for a format that no kind of device module has; PAY-23 of kind missing without a side file; what
    /// [`SideFile::read`] rejects; PAY-29 and the rules of shaders for a `.vulkan` file. Offsets are into `code`.
    pub fn read(
        name: &str,
        format: &str,
        code: &'a [u8],
        side: Option<&[u8]>,
        findings: &mut Findings,
    ) -> Result<ModuleFile<'a>, Violation> {
        let format = known(name, format)?;
        let Some(side) = side else {
            let message = format!(
                "`{name}` has no side file `{}`, so that none of its functions can be launched",
                side_file_name(name)
            );
            // PAY-23: the code alone does not state which functions it has, nor with what arguments they are launched.
            return Err(PAY_23.rejected(Kind::Missing, message));
        };
        let side = SideFile::read(side, findings)?;
        // PAY-27: only the side file says whether a release with argument tags wrote it.
        let tagged = side
            .functions
            .iter()
            .any(|function| !function.info.arg_extra_tags.is_empty());
        let layout = if tagged { Layout::V0_21 } else { Layout::V0_7 };
        let (info, form) = form_of(format)?;
        let mut functions = Some(side.functions);
        let rejected = side.rejected;
        let fields = form
            .slots
            .iter()
            .map(|slot| {
                Ok(match slot.shape {
                    // PAY-28: the extension is the format; the file itself does not repeat it.
                    FieldShape::Format(_) => Field::Text(Cow::Borrowed(format.extension)),
                    FieldShape::Functions | FieldShape::SilentFunctions => {
                        Field::Functions(functions.take().unwrap_or_default())
                    }
                    FieldShape::Code => Field::Bytes(Cow::Borrowed(code)),
                    _ => {
                        let mut cursor = Cursor::new(code);
                        cursor.u32("magic", PAY_29)?.require(
                            PAY_29,
                            |magic| *magic == VULKAN_MAGIC,
                            |magic| format!("the file begins with {magic:#010x} and not with {VULKAN_MAGIC:#010x}"),
                        )?;
                        let shaders = slot.read(layout, &mut cursor, findings)?;
                        cursor.finish("the shaders", findings)?;
                        shaders
                    }
                })
            })
            .collect::<Result<Vec<_>, Violation>>()?;
        Ok(ModuleFile {
            format,
            payload: Payload::Known(KnownPayload::new(info, form, fields)),
            layout,
            rejected,
        })
    }
}

/// A device module as `release` saves it to a file called `name`: the content of that file and of its side file. `format` takes the
/// place of the extension where it is not empty.
///
/// # Errors
///
/// PAY-28: unknown-kind for an extension of no kind of device module, unsupported where `release` does not save it, malformed where
/// it is not the format of the payload.
pub fn write(
    payload: &Payload<'_>,
    name: &str,
    format: &str,
    release: Release,
) -> Result<(Vec<u8>, String), Violation> {
    let format = known(name, format)?;
    // PAY-28: releases compare the extension with the format of the module: code in another format under this name would not load.
    let own = payload.format().unwrap_or_default();
    let kinds = format.kinds();
    PAY_28.demand(
        Kind::Malformed,
        own == format.extension && kinds.contains(&payload.kind()),
        || {
            format!(
                "a `{}` module of format `{own}` cannot be saved as `.{}`",
                payload.kind(),
                format.extension
            )
        },
    )?;
    PAY_28.demand(Kind::Unsupported, format.is_saved(release), || {
        format!("{release} saves no `.{}` files", format.extension)
    })?;
    let mut functions = None;
    let mut code = None;
    for field in payload.fields() {
        match field {
            Field::Functions(list) => functions = Some(list.clone()),
            Field::Bytes(bytes) => code = Some(bytes.clone().into_owned()),
            Field::Shaders(list) => {
                let mut out = Writer::new();
                out.u32(VULKAN_MAGIC);
                // PAY-29: as form 0.3 has them, without lengths (PAY-15).
                super::device::write_shaders(list, false, &mut out);
                code = Some(out.into_bytes());
            }
            _ => {}
        }
    }
    let Some(code) = code else {
        // PAY-16, PAY-18: code in one piece for each kernel has no file.
        let message = format!("this `{}` module has no code in one piece", payload.kind());
        return Err(PAY_28.rejected(Kind::Unsupported, message));
    };
    let side = SideFile {
        functions: functions.unwrap_or_default(),
        rejected: Vec::new(),
    };
    Ok((code, side.to_text(release)))
}

/// What the extension of `name` is: what follows its last dot; `None` for a name without one.
///
/// Folders count (PAY-23): that of `a.b/c` is `b/c`.
pub fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, extension)| extension)
}

/// The name of the side file of the file called `name`, if its extension is one of device modules (PAY-23).
pub fn side_file_of(name: &str) -> Option<String> {
    let last = extension(name)?;
    file_format(last).map(|_| side_file_name(name))
}

/// Whether a file called `name` is a side file.
pub fn is_side_file(name: &str) -> bool {
    name.ends_with(".tvm_meta.json")
}

/// The name of the side file of the file called `name` (PAY-23).
pub fn side_file_name(name: &str) -> String {
    // PAY-23: any dot, that of a folder among them, as releases look for it: a file that they wrote is found again.
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    format!("{stem}.tvm_meta.json")
}

/// The row of `format`, or of the extension of `name` where that is empty.
fn known(name: &str, format: &str) -> Result<&'static FileFormat, Violation> {
    let extension = match format {
        "" => extension(name).unwrap_or_default(),
        format => format,
    };
    file_format(extension).ok_or_else(|| {
        let message = format!("no kind of device module is in `.{extension}` files");
        PAY_28.rejected(Kind::UnknownKind, message)
    })
}

/// The kind that a file of `format` is loaded as, and the form of it that is code in one piece, or shaders.
fn form_of(
    format: &FileFormat,
) -> Result<(&'static super::KindInfo, &'static PayloadForm), Violation> {
    let found = kind_info(format.kind).and_then(|info| {
        let mut forms = info.forms.iter().rev();
        let whole = |form: &&PayloadForm| {
            form.slots
                .iter()
                .any(|slot| matches!(slot.shape, FieldShape::Format(_)))
                && form
                    .slots
                    .iter()
                    .all(|slot| !matches!(slot.shape, FieldShape::Kernels | FieldShape::Version))
        };
        // The oldest form: later ones of the same kind divide the code, or frame it.
        Some((info, forms.find(whole)?))
    });
    found.ok_or_else(|| {
        let message = format!("no payload of `{}` has code in one piece", format.kind);
        PAY_28.rejected(Kind::Unsupported, message)
    })
}
