//! A device module in files: its code, and a side file that says how its functions are launched.
//!
//! | file | content | rule |
//! |---|---|---|
//! | `x.cl`, `x.ptx`, `x.hsaco`, ... | the code of the payload, unchanged | PAY-23 |
//! | `x.vulkan` | u32 magic, then the shaders of the payload | PAY-29 |
//! | `x.tvm_meta.json` | a version, and the functions with their names | PAY-24 to PAY-27 |
//!
//! No file is opened here: callers pass names and bytes.
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

/// The first word of a `.vulkan` file (PAY-29).
const VULKAN_MAGIC: u32 = 0x0270_0027;

/// A device module that was read from its files.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleFile<'a> {
    /// The row of its extension.
    pub format: &'static FileFormat,
    /// The payload that a library stores for the same module.
    pub payload: Payload<'a>,
    /// The layout that stores the payload without a loss: 0.21 if a function has argument tags (PAY-27), otherwise 0.7.
    pub layout: Layout,
    /// The releases whose readers reject the side file, with the reason.
    pub rejected: Vec<(Releases, String)>,
}

impl<'a> ModuleFile<'a> {
    /// Reads the module from the file `name` with content `code`. `side` is the content of its side file. A non-empty `format` replaces the
    /// extension, as in the loaders of all releases.
    ///
    /// # Errors
    ///
    /// Returns PAY-28 for a format that no kind of device module has, and PAY-23, kind missing, without a side file. Returns the errors
    /// of [`SideFile::read`]. For a `.vulkan` file, also returns PAY-29 and the rules of shaders. Offsets are into `code`.
    pub fn read(
        name: &str,
        format: &str,
        code: &'a [u8],
        side: Option<&[u8]>,
        findings: &mut Findings,
    ) -> Result<ModuleFile<'a>, Violation> {
        let format = find_format(name, format)?;
        let Some(side) = side else {
            let message = format!(
                "`{name}` needs the side file `{}`, which is missing: without it none of its functions can be launched",
                side_file_name(name)
            );
            // PAY-23: the code alone does not show which functions it has, or with which arguments they are launched.
            return Err(PAY_23.rejected(Kind::Missing, message));
        };
        let side = SideFile::read(side, findings)?;
        // PAY-27: only the side file shows whether the release that wrote it has argument tags.
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
                    // PAY-28: the extension is the format, which the file itself does not contain.
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

/// Returns the files of a device module as `release` saves it under `name`: the content of the file and of its side file. A non-empty
/// `format` replaces the extension.
///
/// # Errors
///
/// Returns PAY-28. It is unknown-kind for an extension that no kind of device module has, and unsupported if `release` does not save
/// it. It is malformed if it is not the format of the payload.
pub fn write(
    payload: &Payload<'_>,
    name: &str,
    format: &str,
    release: Release,
) -> Result<(Vec<u8>, String), Violation> {
    let format = find_format(name, format)?;
    // PAY-28: releases compare the extension with the format of the module, so code in another format would not load under this name.
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
                // PAY-29: the shaders are in form 0.3, without lengths (PAY-15).
                super::device::write_shaders(list, false, &mut out);
                code = Some(out.into_bytes());
            }
            _ => {}
        }
    }
    let Some(code) = code else {
        // PAY-16, PAY-18: a payload with separate code for each kernel cannot be a file.
        let message = format!("this `{}` module has no code in one piece", payload.kind());
        return Err(PAY_28.rejected(Kind::Unsupported, message));
    };
    let side = SideFile {
        functions: functions.unwrap_or_default(),
        rejected: Vec::new(),
    };
    Ok((code, side.to_text(release)))
}

/// Returns the extension of `name`: the text after its last dot; `None` for a name without a dot.
///
/// The whole path is searched (PAY-23): the extension of `a.b/c` is `b/c`.
pub fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, extension)| extension)
}

/// Returns the name of the side file of `name`, if its extension is one of device modules (PAY-23).
pub fn side_file_of(name: &str) -> Option<String> {
    let last = extension(name)?;
    file_format(last).map(|_| side_file_name(name))
}

/// Returns whether `name` is the name of a side file.
pub fn is_side_file(name: &str) -> bool {
    name.ends_with(".tvm_meta.json")
}

/// Returns the name of the side file of `name` (PAY-23).
pub fn side_file_name(name: &str) -> String {
    // PAY-23: any dot counts, including a dot in the name of a folder. Files that releases write are named in this way.
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    format!("{stem}.tvm_meta.json")
}

/// Returns the row of `format`, or if that is empty, of the extension of `name`.
fn find_format(name: &str, format: &str) -> Result<&'static FileFormat, Violation> {
    let extension = match format {
        "" => extension(name).unwrap_or_default(),
        format => format,
    };
    file_format(extension).ok_or_else(|| {
        let message = format!("no kind of device module is in `.{extension}` files");
        PAY_28.rejected(Kind::UnknownKind, message)
    })
}

/// Returns the kind under which a file of `format` is loaded, and the form of that kind with code in one piece, or with shaders.
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
        // The oldest such form is used, because later forms split the code or add lengths.
        Some((info, forms.find(whole)?))
    });
    found.ok_or_else(|| {
        let message = format!("no payload of `{}` has code in one piece", format.kind);
        PAY_28.rejected(Kind::Unsupported, message)
    })
}
