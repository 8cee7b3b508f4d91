//! The payload of a module: the data that the module stores in a library.
//!
//! | family | kinds | file | rules |
//! |---|---|---|---|
//! | device code | cuda, opencl, metal, hip, vulkan, webgpu, hexagon, ... | `device.rs` | PAY-10 .. PAY-22 |
//! | device code in separate files | as above | `file/` | PAY-23 .. PAY-29 |
//! | host code and constants | c, static_library, metadata, const_loader, metadata_module | `host.rs` | PAY-30 .. PAY-38 |
//! | executors | GraphRuntimeFactory, GraphExecutorFactory, AotExecutorFactory | `executor.rs` | PAY-40 .. PAY-43 |
//! | vendors | JSON runtimes, coreml, ethos-n, VitisAIRuntime, torch, mrvl | `vendor.rs` | PAY-45 .. PAY-53, PAY-98 |
//! | StackVM | stackvm (a file) | `stackvm.rs` | PAY-55 .. PAY-57 |
//! | Relay VM | VMExecutable | `relay_vm.rs`, `relay_function.rs`, `relay_code.rs` | PAY-60 .. PAY-77 |
//! | Relax VM | relax.Executable, relax.VMExecutable | `relax_vm.rs`, `relax_function.rs`, `relax_instruction.rs`, `relax_code.rs` | PAY-81 .. PAY-96 |
//!
//! A kind has one or more *forms*, each named after the release that introduced it. A form is a list of slots, each with a name, a shape
//! and a rule. [`kinds`] returns this table, whose rows are in `kind_table.rs`. `slot.rs` defines slots, `field.rs` their values, and
//! `slot_codec.rs` reads and writes them; no other code depends on the order of fields. The JSON form is in `json.rs`.
//!
//! Before layout 0.22, a payload has no length: its grammar finds its end, and an unknown kind ends the reading.
//!
//! ```
//! use tvmspec::blob;
//!
//! let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
//! let library = blob::open(&file)?.remove(0);
//! let metal = library.modules()[1].stored().expect("it is no host library").decode()?.value;
//! assert_eq!((metal.kind(), metal.format()), ("metal", Some("metal")));
//! let (name, kernel) = metal.functions().next().expect("it has a kernel");
//! assert_eq!((name, kernel.arg_types.len()), ("add3_kernel0", 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accessors;
mod code_needs;
mod device;
pub(crate) mod disassembly_line;
mod dtypes;
mod executor;
mod field;
pub mod file;
mod function_info;
mod host;
mod json;
mod json_reader;
mod json_vm;
mod kind_table;
pub(crate) mod kinds;
mod name_set;
mod relax_code;
mod relax_function;
mod relax_instruction;
pub mod relax_vm;
mod relay_code;
mod relay_function;
mod relay_text;
pub mod relay_vm;
mod slot;
mod slot_codec;
mod stackvm;
mod strings;
mod vendor;

crate::rule::chapter_rules!("payload");
pub(crate) use rules::*;

pub use code_needs::CodeNeed;
pub use field::{Field, KernelCode, Network, Shader};
#[cfg(feature = "inspect")]
pub(crate) use function_info::marked_form;
pub use function_info::{DeviceFunction, FunctionInfo, SecondForm};
pub use kind_table::{kind_info, kinds};
pub use kinds::{KindInfo, PayloadForm};
#[cfg(feature = "inspect")]
pub(crate) use relax_vm::LATER;
pub use slot::{FieldShape, FormSlot};
pub use stackvm::StackVm;

use crate::release::Layout;
use crate::rule::{Findings, Kind, Strictness, Violation};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// Text that is borrowed from a file or owned by the value.
pub type Text<'a> = Cow<'a, str>;

/// Bytes that are borrowed from a file or owned by the value.
pub type Binary<'a> = Cow<'a, [u8]>;

/// The payload of one module.
///
/// Accessors find content by its meaning: [`Payload::functions`], [`Payload::data`], [`Payload::kernels`], [`Payload::params`],
/// [`Payload::relax_vm`]. [`Payload::field`] finds a field by its name in the table of the kind.
///
/// ```
/// let file = std::fs::read("golden/graph/models/v0.8/mlp.so")?;
/// let library = tvmspec::blob::open(&file)?.remove(0);
/// let factory = library.modules()[0].stored().expect("the root is the factory").decode()?.value;
/// let names: Vec<&str> = factory.params().expect("it has parameters").iter().map(|(name, _)| &**name).collect();
/// assert_eq!(names, ["p0", "p1", "p2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Payload<'a> {
    /// The payload of a kind with a grammar.
    Known(KnownPayload<'a>),
    /// The payload of a kind without a grammar, which only layout 0.22 can store.
    Opaque {
        /// The module's kind.
        kind: Text<'a>,
        /// All bytes of the payload.
        bytes: Binary<'a>,
    },
}

/// A payload that was read by its grammar.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownPayload<'a> {
    /// The row of the kind in the table.
    info: &'static KindInfo,
    /// The row of the form, which is a form of the kind.
    form: &'static PayloadForm,
    /// One field for every slot of the form, in the order of the file.
    fields: Vec<Field<'a>>,
}

/// Reads the payload of a module of `kind` in the form of `layout`.
///
/// Before layout 0.22, the cursor stops after the payload. In layout 0.22, the window of the cursor is the payload, and bytes after the
/// grammar's end are a WIRE-08 finding. A kind without a grammar in this layout is [`Payload::Opaque`] in 0.22, and breaks PAY-01 in older
/// layouts.
///
/// # Errors
///
/// Returns any rule of this chapter, of `wire` or of `tensor` that the bytes break. If a kind has several forms and none can be read,
/// returns the error of the form that could be read furthest.
pub fn read<'a>(
    kind: &str,
    layout: Layout,
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<Payload<'a>, Violation> {
    // PAY-01: a kind that this layout never had is as unknown as a kind that no release has.
    let info = kind_info(kind).filter(|info| info.forms_in(layout).next().is_some());
    let Some(info) = info else {
        if layout >= Layout::V0_22 {
            let bytes = cursor.skip_rest("payload", PAY_01);
            return Ok(Payload::Opaque {
                // The kind is copied, because it comes from another part of the library, whose lifetime may be shorter.
                kind: Cow::Owned(kind.to_owned()),
                bytes: Cow::Borrowed(bytes),
            });
        }
        let message = format!(
            "no payload of kind `{kind}` is known in layout {layout}, whose payloads have no length: nothing behind it can be read"
        );
        return Err(PAY_01
            .broken(Kind::UnknownKind, cursor.offset(), message)
            .in_field("payload"));
    };
    // PAY-09: the form is chosen by trial and then read again, so that findings and fields of the trials do not remain.
    let form = choose(info, layout, cursor)?;
    let fields = read_form(form, layout, cursor, findings)?;
    let payload = Payload::Known(KnownPayload { info, form, fields });
    if layout >= Layout::V0_22 {
        // WIRE-08: only in layout 0.22 the window is the payload; in older layouts, the next module follows (BLOB-05).
        let whose = if payload.is_later() {
            // PAY-54: the fields that such a TVM writes after those of 0.27 are unknown.
            ", which a TVM after 0.27 wrote"
        } else {
            ""
        };
        cursor.finish(&format!("the {kind} payload{whose}"), findings)?;
    }
    Ok(payload)
}

/// Returns whether [`read`] finds no grammar for `kind` and keeps its bytes unread.
pub(crate) fn is_opaque(kind: &str, layout: Layout) -> bool {
    layout >= Layout::V0_22
        && kind_info(kind).is_none_or(|info| info.forms_in(layout).next().is_none())
}

/// Returns the newest form that can be read without a violation and, if the window is known, to its end (PAY-09).
fn choose(
    info: &'static KindInfo,
    layout: Layout,
    cursor: &Cursor<'_>,
) -> Result<&'static PayloadForm, Violation> {
    let forms: Vec<&'static PayloadForm> = info.forms_in(layout).collect();
    // `read` has checked that a form exists.
    let newest = forms.first().copied().unwrap_or(&kinds::NOTHING);
    if forms.len() < 2 {
        return Ok(newest);
    }
    let mut reads = None;
    let mut furthest: Option<Violation> = None;
    for form in forms {
        // PAY-09: the bytes do not name their form. Trials leave neither findings nor a trace.
        let mut trial = cursor.look_ahead();
        let mut scratch = Findings::new(Strictness::Lenient);
        match read_form(form, layout, &mut trial, &mut scratch) {
            // PAY-09: before 0.22, the next module follows in the window, so the end of the form proves nothing.
            Ok(_) if layout < Layout::V0_22 || trial.is_at_end() => return Ok(form),
            // PAY-09: the form can be read but does not fill the window. It is chosen if no older form fits, and the rest is trailing
            // (WIRE-08).
            Ok(_) => reads = reads.or(Some(form)),
            Err(broken) => {
                if furthest
                    .as_ref()
                    // PAY-09: the error of the form that could be read furthest is the most useful. If several are equal, the newest
                    // form is used.
                    .is_none_or(|before| before.offset() < broken.offset())
                {
                    furthest = Some(broken);
                }
            }
        }
    }
    match (reads, furthest) {
        (Some(form), _) => Ok(form),
        (None, Some(broken)) => Err(broken),
        (None, None) => Ok(newest),
    }
}

/// Reads every slot of `form` in order, and then checks the rules that involve several fields.
fn read_form<'a>(
    form: &'static PayloadForm,
    layout: Layout,
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<Vec<Field<'a>>, Violation> {
    let mut fields = Vec::with_capacity(form.slots.len());
    let mut starts = Vec::with_capacity(form.slots.len());
    for slot in form.slots {
        // The offsets are kept, so that such a rule can name the field that breaks it.
        starts.push(cursor.offset());
        fields.push(slot.read(layout, cursor, findings)?);
    }
    // These rules are checked after all fields are read, because a rule may refer to a later field.
    if let Some(check) = form.check {
        check(
            &Checked {
                form,
                layout,
                fields: &fields,
                starts: &starts,
            },
            findings,
        )
        // A strict finding without a field is about the payload itself.
        .map_err(|broken| match broken.field() {
            "" => broken.in_field(""),
            _ => broken,
        })?;
    }
    Ok(fields)
}

/// The input of a form's check: the fields and their offsets.
pub(crate) struct Checked<'c, 'a> {
    /// The form, whose slots name the fields.
    pub(crate) form: &'static PayloadForm,
    /// The layout of the library, because some rules depend on it.
    pub(crate) layout: Layout,
    /// One field for every slot.
    fields: &'c [Field<'a>],
    /// The offset of each field.
    starts: &'c [u64],
}

impl<'c, 'a> Checked<'c, 'a> {
    /// Returns the field in slot `name`, and its offset.
    pub(crate) fn field(&self, name: &str) -> Option<(&'c Field<'a>, u64)> {
        let index = self.form.slots.iter().position(|slot| slot.name == name)?;
        Some((self.fields.get(index)?, *self.starts.get(index)?))
    }
}

impl<'a> Payload<'a> {
    /// Returns the module's kind.
    pub fn kind(&self) -> &str {
        match self {
            Payload::Known(known) => known.info.kind,
            Payload::Opaque { kind, .. } => kind,
        }
    }

    /// Returns the name of the form, which is the release that introduced it. `None` for opaque bytes.
    pub fn form(&self) -> Option<&'static str> {
        match self {
            Payload::Known(known) => Some(known.form.name),
            Payload::Opaque { .. } => None,
        }
    }

    /// Writes the payload in the form of `layout`, byte for byte as [`read`] accepts it.
    ///
    /// If `layout` does not have the payload's form, it is written in a form of that layout with the same fields.
    ///
    /// # Errors
    ///
    /// Returns an error of kind unsupported: PAY-01 if the layout does not have the kind or form, PAY-03 for argument tags before 0.21,
    /// or PAY-85 for memory scopes before 0.22. For Relay VM code, returns PAY-62 for an unknown release, and PAY-66 for constants that
    /// the release cannot load later. Returns PAY-48, kind malformed, for sizes that do not match their buffers. Returns the rule of a
    /// slot, kind type, if the field has another shape.
    pub fn write(&self, layout: Layout, out: &mut Writer) -> Result<(), Violation> {
        let known = match self {
            Payload::Known(known) => known,
            // PAY-01: only the length of opaque bytes is known, and 0.22 stores it.
            Payload::Opaque { bytes, .. } if layout >= Layout::V0_22 => {
                out.raw(bytes);
                return Ok(());
            }
            Payload::Opaque { kind, .. } => {
                let message = format!(
                    "kind `{kind}` has no grammar: its payload can only be stored in layout 0.22, not in {layout}"
                );
                return Err(PAY_01.rejected(Kind::Unsupported, message));
            }
        };
        // PAY-01: only the form depends on the layout. The payload itself is unchanged, so it can be written in both layouts.
        let form = known.form_in(layout)?;
        // PAY-01: forms that are alike have the same fields in the same order, so the fields of one fit into the slots of the other.
        let pairs = form.slots.iter().zip(&known.fields);
        pairs
            .into_iter()
            .try_for_each(|(slot, field)| slot.write(field, layout, out))
    }

    /// Writes the payload to a new vector.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Payload::write`].
    pub fn to_bytes(&self, layout: Layout) -> Result<Vec<u8>, Violation> {
        let mut out = Writer::new();
        self.write(layout, &mut out)?;
        Ok(out.into_bytes())
    }
}

impl<'a> KnownPayload<'a> {
    /// Creates a payload of `info` in `form`. `fields` must have one field of the right shape for every slot.
    pub(crate) fn new(
        info: &'static KindInfo,
        form: &'static PayloadForm,
        fields: Vec<Field<'a>>,
    ) -> KnownPayload<'a> {
        KnownPayload { info, form, fields }
    }

    /// Returns the row of the kind in the table.
    pub fn info(&self) -> &'static KindInfo {
        self.info
    }

    /// Returns the row of the form in the table.
    pub fn form(&self) -> &'static PayloadForm {
        self.form
    }

    /// Returns the form in which `layout` can store this payload.
    fn form_in(&self, layout: Layout) -> Result<&'static PayloadForm, Violation> {
        let mut forms = self.info.forms_in(layout);
        let same = |form: &&PayloadForm| form.name == self.form.name;
        // PAY-01: a form with the same fields fits too, for example vulkan with or without a length before each shader (PAY-15).
        let alike = |form: &&PayloadForm| form.is_like(self.form);
        let found = forms.clone().find(same).or_else(|| forms.find(alike));
        found.ok_or_else(|| {
            let message = format!(
                "a {} payload of form {} cannot be stored in layout {layout}",
                self.info.kind, self.form.name
            );
            PAY_01.rejected(Kind::Unsupported, message)
        })
    }
}
