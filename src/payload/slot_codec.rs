//! Reading and writing of the value of a slot.

use super::field::Field;
use super::slot::{FieldShape, FormSlot};
use super::strings::{names, text, write_names};
use super::{device, executor, function_info, host, relax_vm, relay_vm, stackvm, vendor};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

impl FormSlot {
    /// Reads the value of the slot in the form of `layout`. A violation names the field of the slot.
    pub(super) fn read<'a>(
        &self,
        layout: Layout,
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<Field<'a>, Violation> {
        let (name, rule) = (self.name, self.rule);
        Ok(match self.shape {
            // PAY-98: base64 is checked after all fields are read, because the text may still be the kind of the next module.
            FieldShape::Text | FieldShape::Base64 => Field::Text(text(cursor, name, rule)?),
            FieldShape::Version => Field::Text(device::read_version(cursor, name, rule)?),
            FieldShape::Format(known) => {
                Field::Text(device::read_format(cursor, name, rule, known, findings)?)
            }
            // It has a length like a string (WIRE-04), but is not text, because code may be binary.
            FieldShape::Code | FieldShape::Binary => {
                Field::Bytes(Cow::Borrowed(cursor.bytes(name, rule)?))
            }
            // PAY-53: this is the only plain number in a payload, an `int` of the writer.
            FieldShape::Int => Field::Int(*cursor.i32(name, rule)?),
            FieldShape::Names => Field::Names(names(cursor, name, rule)?),
            FieldShape::Functions => {
                Field::Functions(function_info::read(layout, cursor, findings)?)
            }
            FieldShape::SilentFunctions => {
                Field::Functions(function_info::read_silent(layout, cursor, findings)?)
            }
            FieldShape::Kernels => {
                Field::Kernels(device::read_kernels(cursor, name, rule, findings)?)
            }
            FieldShape::Shaders { framed } => {
                Field::Shaders(device::read_shaders(cursor, name, rule, framed, findings)?)
            }
            FieldShape::Variables => Field::Tensors(host::read_variables(cursor, rule, findings)?),
            FieldShape::Symbols => Field::Symbols(host::read_symbols(cursor, rule, findings)?),
            FieldShape::Params => Field::Tensors(executor::read_params(cursor, rule, findings)?),
            FieldShape::Networks { sizes } => {
                Field::Networks(vendor::read_networks(cursor, rule, sizes)?)
            }
            FieldShape::Relay => {
                Field::Relay(Box::new(relay_vm::RelayExecutable::read(cursor, findings)?))
            }
            FieldShape::Relax => Field::Relax(Box::new(relax_vm::RelaxExecutable::read(
                layout, cursor, findings,
            )?)),
            FieldShape::StackVms => Field::StackVms(stackvm::read_functions(cursor)?),
            FieldShape::Imports => Field::Imports(stackvm::read_imports(layout, cursor, findings)?),
        })
    }

    /// Writes `field` in the form of `layout`: the inverse of [`FormSlot::read`].
    pub(super) fn write(
        &self,
        field: &Field<'_>,
        layout: Layout,
        out: &mut Writer,
    ) -> Result<(), Violation> {
        match (self.shape, field) {
            (
                FieldShape::Text | FieldShape::Version | FieldShape::Base64 | FieldShape::Format(_),
                Field::Text(text),
            ) => out.str(text),
            (FieldShape::Code | FieldShape::Binary, Field::Bytes(bytes)) => out.bytes(bytes),
            (FieldShape::Int, Field::Int(value)) => out.i32(*value),
            (FieldShape::Names, Field::Names(names)) => write_names(names, out),
            // PAY-09: only readers must distinguish the two shapes; both are written in the same way.
            (FieldShape::Functions | FieldShape::SilentFunctions, Field::Functions(list)) => {
                return function_info::write(list, layout, out);
            }
            (FieldShape::Kernels, Field::Kernels(list)) => device::write_kernels(list, out),
            (FieldShape::Shaders { framed }, Field::Shaders(list)) => {
                device::write_shaders(list, framed, out);
            }
            (FieldShape::Variables, Field::Tensors(list)) => host::write_variables(list, out),
            (FieldShape::Symbols, Field::Symbols(list)) => host::write_symbols(list, out),
            (FieldShape::Params, Field::Tensors(list)) => executor::write_params(list, out),
            (FieldShape::Networks { sizes }, Field::Networks(list)) => {
                return vendor::write_networks(list, sizes, out);
            }
            (FieldShape::Relay, Field::Relay(executable)) => return executable.write(out),
            (FieldShape::Relax, Field::Relax(executable)) => return executable.write(layout, out),
            (FieldShape::StackVms, Field::StackVms(list)) => stackvm::write_functions(list, out),
            (FieldShape::Imports, Field::Imports(list)) => {
                return stackvm::write_imports(list, layout, out);
            }
            _ => {
                let message = format!("`{}` holds a value of another shape", self.name);
                return Err(self.rule.rejected(Kind::Type, message));
            }
        }
        Ok(())
    }
}
