//! The Relay VM executable: globals, constants, primitives, functions.
//!
//! | field | bytes | releases | rule |
//! |---|---|---|---|
//! | length | u64 | | PAY-60 |
//! | magic | u64, 0xD225DE2F4214151D | | PAY-61 |
//! | version | string, the release that wrote it | | PAY-62 |
//! | virtual devices | vector of device, with a memory scope from 0.14 | 0.9 .. | PAY-64 |
//! | host device | i32 | 0.9 .. | PAY-65 |
//! | globals | vector of strings, by function index | | PAY-63 |
//! | constants | u64 count; tensors; from 0.9 each with a u32 tag | | PAY-66 |
//! | constant devices | vector of i64 | 0.7 .. | PAY-67 |
//! | primitives | vector of strings | | PAY-68 |
//! | primitive attributes | map of u64 to map of strings | 0.8 .. | PAY-68 |
//! | functions | vector of functions | | PAY-69 .. PAY-77 |

use super::kinds::PayloadForm;
use super::name_set::NameSet;
use super::relax_vm::LATER;
use super::relay_code::RelayFrame;
pub use super::relay_code::{OPCODES, Opcode, RelayInstruction, RelayOperand};
pub use super::relay_function::RelayFunction;
use super::slot::{FieldShape, FormSlot};
use super::strings::{names, text, write_names};
use super::{PAY_60, PAY_61, PAY_62, PAY_63, PAY_64, PAY_65, PAY_66, PAY_67, PAY_68, Text};
use crate::release::{Release, Releases};
use crate::rule::{Detail, Findings, Kind, Violation};
use crate::tensor::{Device, Sizing, TensorRecord};
use crate::wire::{Cursor, Writer};

/// The form of `VMExecutable`. Modules exist from 0.8 on; the code format is two releases older.
pub(super) const FORMS: &[PayloadForm] = &[PayloadForm::new(
    "0.8",
    Releases::between(8, 19),
    &[FormSlot::new("executable", FieldShape::Relay, PAY_60)],
)];

/// The first eight bytes of the code, as a little-endian integer.
pub const MAGIC: u64 = 0xD225_DE2F_4214_151D;

/// A Relay VM executable.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayExecutable<'a> {
    /// The release that wrote it. A runtime only loads code of the same release.
    pub version: Text<'a>,
    /// The devices that code refers to by index; empty before 0.9.
    pub virtual_devices: Vec<VirtualDevice<'a>>,
    /// The index of the host device; 0 before 0.9.
    pub host_device: i32,
    /// Names of the functions, by index.
    pub globals: Vec<Text<'a>>,
    /// The constant pool.
    pub constants: Vec<RelayConstant<'a>>,
    /// Device of each constant: a device type up to 0.8, an index into `virtual_devices` from 0.9 on. Empty in 0.6.
    pub constant_devices: Vec<i64>,
    /// Names of the compiled functions, by index.
    pub primitives: Vec<Text<'a>>,
    /// Text attributes of primitives, with the index of the primitive; empty before 0.8.
    pub primitive_attrs: Vec<(u64, RelayAttributes<'a>)>,
    /// The functions, in file order.
    pub functions: Vec<RelayFunction<'a>>,
}

/// Text attributes, in file order.
pub type RelayAttributes<'a> = Vec<(Text<'a>, Text<'a>)>;

/// A device that code refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualDevice<'a> {
    /// Its type and number.
    pub device: Device,
    /// Its memory scope; empty before 0.14.
    pub scope: Text<'a>,
}

/// One constant of the pool.
#[derive(Clone, Debug, PartialEq)]
pub enum RelayConstant<'a> {
    /// A tensor.
    Tensor(TensorRecord<'a>),
    /// The name of a tensor that is loaded later from a parameter file; from 0.9 on.
    Late(Text<'a>),
}

impl<'a> RelayExecutable<'a> {
    /// Reads the payload: a length and the code (PAY-60).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`RelayExecutable::read_code`]; WIRE-01 for a length beyond the payload; under strict findings, WIRE-08
    /// for bytes after the code.
    pub fn read(
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<RelayExecutable<'a>, Violation> {
        // PAY-60: the code is a string in the payload. A file that contains only code has no length (BLOB-69).
        let mut window = cursor.window("code")?;
        let executable = RelayExecutable::read_code(&mut window, findings)?;
        window.finish("the VM code", findings)?;
        Ok(executable)
    }

    /// Reads the code without a length, in the form that a release's `save` returns.
    ///
    /// # Errors
    ///
    /// At the byte of the field: PAY-61, PAY-62, PAY-65 to PAY-67 and PAY-69 to PAY-77; the rules of [`wire`](crate::wire); for tensors the
    /// errors of [`TensorRecord::read`].
    pub fn read_code(
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<RelayExecutable<'a>, Violation> {
        let (version, era) = read_header(cursor)?;
        // PAY-63, PAY-64: from 0.9 on, the devices come before the globals.
        let (virtual_devices, host_device) = if era >= 9 {
            read_devices(cursor, era)?
        } else {
            (Vec::new(), 0)
        };
        let globals = names(cursor, "globals", PAY_63)?;
        // WIRE-06: from 0.9 on, the smallest constant has a tag and the length of a name; before, a tensor record of 40 bytes without data.
        let constants = cursor.vector(if era >= 9 { 12 } else { 40 }, "constants", |cursor| {
            RelayConstant::read(cursor, era, findings)
        })?;
        let constant_devices = read_constant_devices(cursor, era, constants.len())?;
        // PAY-68: an instruction calls a compiled function by the index of its name (PAY-77).
        let primitives = names(cursor, "primitives", PAY_68)?;
        let primitive_attrs = if era >= 8 {
            read_attrs(cursor)?
        } else {
            Vec::new()
        };
        // PAY-75 to PAY-77: the valid range of a field depends on tables that come before the functions.
        let mut frame = RelayFrame {
            era,
            registers: 0,
            instructions: 0,
            constants: constants.len(),
            functions: globals.len(),
            primitives: primitives.len(),
        };
        // PAY-74: the names are sorted once for all functions.
        let known = NameSet::of(&mut globals.iter().map(|name| &**name));
        // The smallest function has a count and three strings, the count of its parameters, and from 0.7 on the count of their devices.
        let functions = cursor.vector(if era >= 7 { 48 } else { 40 }, "functions", |cursor| {
            RelayFunction::read(cursor, &known, &mut frame)
        })?;
        Ok(RelayExecutable {
            version,
            virtual_devices,
            host_device,
            globals,
            constants,
            constant_devices,
            primitives,
            primitive_attrs,
            functions,
        })
    }

    /// Writes the payload: the inverse of [`RelayExecutable::read`].
    ///
    /// # Errors
    ///
    /// Returns PAY-62 if no release of this version has this code; PAY-66 for a late constant before 0.9.
    pub fn write(&self, out: &mut Writer) -> Result<(), Violation> {
        // PAY-60: the length is known after the code is written.
        let mut code = Writer::new();
        self.write_code(&mut code)?;
        out.bytes(&code.into_bytes());
        Ok(())
    }

    /// Writes the code without a length.
    pub(crate) fn write_code(&self, out: &mut Writer) -> Result<(), Violation> {
        // PAY-62: the version selects the grammar, so an unknown version cannot be written.
        let Some(era) = era_of(&self.version) else {
            let message = format!("no release `{}` has Relay VM code", self.version);
            return Err(PAY_62.rejected(Kind::Unsupported, message));
        };
        // PAY-61: all releases share one magic; they differ after the version (PAY-62).
        out.u64(MAGIC);
        out.str(&self.version);
        if era >= 9 {
            out.vector(&self.virtual_devices, |out, device| {
                device.device.write(out);
                if era >= 14 {
                    out.str(&device.scope);
                }
            });
            out.i32(self.host_device);
        }
        write_names(&self.globals, out);
        out.count(self.constants.len());
        for constant in &self.constants {
            // PAY-66: this is not `Writer::vector`, because writing an element may fail.
            constant.write(era, out)?;
        }
        if era >= 7 {
            out.vector(&self.constant_devices, |out, device| out.i64(*device));
        }
        write_names(&self.primitives, out);
        if era >= 8 {
            out.vector(&self.primitive_attrs, |out, (primitive, attrs)| {
                out.u64(*primitive);
                out.vector(attrs, |out, (key, value)| {
                    out.str(key);
                    out.str(value);
                });
            });
        }
        out.vector(&self.functions, |out, function| function.write(era, out));
        Ok(())
    }
}

/// Reads magic and version (PAY-61, PAY-62). The minor number of the version is the era of the code.
fn read_header<'a>(cursor: &mut Cursor<'a>) -> Result<(Text<'a>, u8), Violation> {
    cursor.u64("magic", PAY_61)?.require(
        PAY_61,
        |magic| *magic == MAGIC,
        |magic| format!("{magic:#018x} is not the magic of Relay VM code: expected {MAGIC:#018x}"),
    )?;
    let version = cursor.str("version", PAY_62)?;
    let Some(era) = era_of(&version) else {
        let minor = version
            .strip_prefix("0.")
            .and_then(|rest| rest.split('.').next());
        let minor = minor.and_then(|minor| minor.parse::<u8>().ok());
        let is_later = minor.is_some_and(|minor| minor > Release::LAST.minor());
        let message = format!(
            "Relay VM code of `{}`: expected a release from 0.6 to 0.19{}",
            version.escape_debug(),
            if is_later { LATER } else { "" }
        );
        let broken = version.broken(PAY_62, Kind::Unsupported, message);
        return Err(broken.with_detail(is_later.then_some(Detail::LaterRelease)));
    };
    Ok((Text::Borrowed(*version), era))
}

/// Returns the minor number of a version from 0.6 to 0.19: `0.8.0`, `0.9.dev0`, `0.19.0`.
pub(super) fn era_of(version: &str) -> Option<u8> {
    // PAY-62: a runtime accepts exactly its own version. Here each version is read with the grammar of its release.
    let rest = version.strip_prefix("0.")?;
    let digits = rest.split('.').next()?;
    // `parse` also accepts a plus sign, which no version has.
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    let minor: u8 = digits.parse().ok().filter(|_| is_number)?;
    // PAY-62: 0.6 wrote the first code that can be read here, and 0.20 removed the Relay VM.
    (6..=19).contains(&minor).then_some(minor)
}

/// Reads the virtual devices, from 0.14 on each with a memory scope, and the index of the host (PAY-64, PAY-65).
fn read_devices<'a>(
    cursor: &mut Cursor<'a>,
    era: u8,
) -> Result<(Vec<VirtualDevice<'a>>, i32), Violation> {
    let devices = cursor.vector(
        if era >= 14 { 16 } else { 8 },
        "virtual_devices",
        |cursor| {
            Ok(VirtualDevice {
                device: Device::read(cursor)?,
                scope: if era >= 14 {
                    text(cursor, "scope", PAY_64)?
                } else {
                    Text::default()
                },
            })
        },
    )?;
    // PAY-65: every release rejects an index outside of the list.
    let host = cursor.i32("host_device", PAY_64)?.require(
        PAY_65,
        |host| usize::try_from(*host).is_ok_and(|host| host < devices.len()),
        |host| {
            format!(
                "the host is device {host}, but the number of devices is {}",
                devices.len()
            )
        },
    )?;
    Ok((devices, host))
}

/// Reads one device for each constant (PAY-67); empty in code of 0.6, which has no such vector.
fn read_constant_devices(
    cursor: &mut Cursor<'_>,
    era: u8,
    constants: usize,
) -> Result<Vec<i64>, Violation> {
    if era < 7 {
        return Ok(Vec::new());
    }
    let field = "constant_devices";
    let devices = cursor.read(field, |cursor| {
        cursor.vector(8, field, |cursor| Ok(*cursor.i64(field, PAY_67)?))
    })?;
    devices.require(
        PAY_67,
        |devices| devices.len() == constants,
        |devices| {
            format!(
                "expected a device for each of {constants} constants, found {} devices",
                devices.len()
            )
        },
    )
}

/// Reads the attributes of the primitives that have some, with the index of each primitive (PAY-68).
fn read_attrs<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<(u64, RelayAttributes<'a>)>, Violation> {
    // WIRE-06: the smallest entry has an index and the count of a map.
    cursor.map(16, "primitive_attrs", |cursor| {
        let primitive = *cursor.u64("primitive", PAY_68)?;
        // WIRE-06: the smallest attribute has the lengths of two strings.
        let attrs = cursor.map(16, "attrs", |cursor| {
            let key = text(cursor, "key", PAY_68)?;
            Ok((key, text(cursor, "value", PAY_68)?))
        })?;
        Ok((primitive, attrs))
    })
}

impl<'a> RelayConstant<'a> {
    /// Reads a constant, with a tag from 0.9 on (PAY-66).
    fn read(
        cursor: &mut Cursor<'a>,
        era: u8,
        findings: &mut Findings,
    ) -> Result<RelayConstant<'a>, Violation> {
        // PAY-66: code of 0.6 contains records of 0.4 to 0.6 (TEN-30).
        let sizing = if era < 7 { Sizing::V0_4 } else { Sizing::V0_7 };
        if era >= 9 {
            let tag = cursor.u32("tag", PAY_66)?;
            match *tag {
                0 => {}
                1 => return text(cursor, "late", PAY_66).map(RelayConstant::Late),
                other => {
                    let message =
                        format!("unknown constant tag {other}: expected 0 (tensor) or 1 (late)");
                    return Err(tag.broken(PAY_66, Kind::UnknownKind, message));
                }
            }
        }
        TensorRecord::read(cursor, sizing, findings).map(RelayConstant::Tensor)
    }

    /// Writes a constant: the inverse of [`RelayConstant::read`].
    fn write(&self, era: u8, out: &mut Writer) -> Result<(), Violation> {
        match self {
            // PAY-66: before 0.9 there is no tag, so every constant is a tensor.
            RelayConstant::Late(name) if era < 9 => {
                let message = format!("release 0.{era} cannot load constant `{name}` later");
                return Err(PAY_66.rejected(Kind::Unsupported, message));
            }
            RelayConstant::Late(name) => {
                out.u32(1);
                out.str(name);
            }
            RelayConstant::Tensor(tensor) => {
                if era >= 9 {
                    out.u32(0);
                }
                tensor.write(out);
            }
        }
        Ok(())
    }
}
