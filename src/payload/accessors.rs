//! Access to the content of a payload by its meaning: functions, code, kernels, fields by name.

use super::{Binary, DeviceFunction, Field, FunctionInfo, Payload, Text, relax_vm, relay_vm};
use crate::tensor::TensorRecord;

impl<'a> Payload<'a> {
    /// Returns the field in slot `name` of the form's table, for changes. Writing rejects a field of another shape.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut Field<'a>> {
        match self {
            Payload::Known(known) => {
                let index = known.form.slots.iter().position(|slot| slot.name == name)?;
                known.fields.get_mut(index)
            }
            Payload::Opaque { .. } => None,
        }
    }

    /// Returns the device functions for changes; `None` for kinds without functions.
    pub fn functions_mut(&mut self) -> Option<&mut Vec<DeviceFunction<'a>>> {
        self.fields_mut().iter_mut().find_map(|field| match field {
            Field::Functions(list) => Some(list),
            _ => None,
        })
    }

    /// Returns the code for changes: source text or binary if the payload has exactly one, or all bytes of an opaque payload.
    pub fn data_mut(&mut self) -> Option<&mut Binary<'a>> {
        if let Payload::Opaque { bytes, .. } = self {
            return Some(bytes);
        }
        let mut found = self
            .fields_mut()
            .iter_mut()
            .filter_map(|field| match field {
                Field::Bytes(bytes) => Some(bytes),
                _ => None,
            });
        // PAY-30, PAY-32: a kind with one string of bytes has its code there. With several strings, none of them is *the* code.
        let first = found.next();
        first.filter(|_| found.next().is_none())
    }

    /// Returns all fields for changes; empty for an opaque payload, whose bytes no grammar divides.
    fn fields_mut(&mut self) -> &mut [Field<'a>] {
        match self {
            Payload::Known(known) => &mut known.fields,
            Payload::Opaque { .. } => &mut [],
        }
    }

    /// Returns the device functions with their names, in file order. Empty for kinds without functions.
    pub fn functions(&self) -> impl Iterator<Item = (&str, &FunctionInfo<'a>)> {
        // PAY-02: no form has more than one function map.
        let list = self.fields().iter().find_map(|field| match field {
            Field::Functions(list) => Some(list.as_slice()),
            _ => None,
        });
        list.unwrap_or_default()
            .iter()
            .map(|function| (&*function.key, &function.info))
    }

    /// Returns whether a TVM after 0.27 wrote the payload: one of its functions has information of the second form (PAY-54).
    pub fn is_later(&self) -> bool {
        self.functions().any(|(_, info)| info.second.is_some())
    }

    /// Adds a tag 0 for each argument without a tag to every device function, as compilers from 0.21 on write (PAY-03).
    pub(crate) fn fill_extra_tags(&mut self) {
        // PAY-01: opaque bytes are only stored in 0.22, so they have no older form to be converted from.
        let Payload::Known(known) = self else { return };
        for field in &mut known.fields {
            // PAY-08: either no tags, or one for each argument. Tag 0 has no meaning.
            let Field::Functions(list) = field else {
                continue;
            };
            for DeviceFunction { info, .. } in list {
                info.arg_extra_tags.resize(info.arg_types.len(), 0);
            }
        }
    }

    /// Returns the format: `ptx`, `cl`, `metallib`, ... `None` for kinds without a format.
    pub fn format(&self) -> Option<&str> {
        // PAY-11: every form with a format has it in a slot of this name; so has `c` (PAY-30).
        match self.field("format") {
            Some(Field::Text(format)) => Some(format),
            _ => None,
        }
    }

    /// Returns the code as text, if the payload has exactly one code and that is UTF-8 without NUL: source of CUDA, OpenCL, Metal or C, and
    /// also PTX. [`Payload::format`] tells them apart.
    pub fn source(&self) -> Option<&str> {
        std::str::from_utf8(self.data()?)
            .ok()
            // A text with a NUL is treated as a binary, as in the JSON form.
            .filter(|text| !text.contains('\0'))
    }

    /// Returns the code: source text or binary, if the payload has exactly one.
    pub fn data(&self) -> Option<&[u8]> {
        let mut found = self.fields().iter().filter_map(|field| match field {
            Field::Bytes(bytes) => Some(&**bytes),
            _ => None,
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// Returns one text or binary for each kernel, if the payload stores kernels separately.
    pub fn kernels(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields().iter().flat_map(|field| {
            // PAY-14, PAY-18, PAY-20: a form contains either shaders or other kernel code, never both.
            let (kernels, shaders) = match field {
                Field::Kernels(list) => (list.as_slice(), [].as_slice()),
                Field::Shaders(list) => ([].as_slice(), list.as_slice()),
                _ => ([].as_slice(), [].as_slice()),
            };
            let kernels = kernels.iter().map(|kernel| (&*kernel.name, &*kernel.code));
            kernels.chain(shaders.iter().map(|shader| (&*shader.name, &*shader.spirv)))
        })
    }

    /// Returns the field in slot `name` of the form's table.
    pub fn field(&self, name: &str) -> Option<&Field<'a>> {
        match self {
            Payload::Known(known) => {
                let index = known.form.slots.iter().position(|slot| slot.name == name)?;
                known.fields.get(index)
            }
            Payload::Opaque { .. } => None,
        }
    }

    /// Returns all fields in file order; empty for opaque bytes.
    pub fn fields(&self) -> &[Field<'a>] {
        match self {
            Payload::Known(known) => &known.fields,
            Payload::Opaque { .. } => &[],
        }
    }

    /// Returns the Relax VM executable, if the payload is one.
    pub fn relax_vm(&self) -> Option<&relax_vm::RelaxExecutable<'a>> {
        match self.fields().first() {
            // PAY-81: the executable is the only slot of its form.
            Some(Field::Relax(executable)) => Some(executable),
            _ => None,
        }
    }

    /// Returns the named tensors: the parameters of an executor, or the variables of constants. `None` for a kind without them.
    pub fn params(&self) -> Option<&[(Text<'a>, TensorRecord<'a>)]> {
        self.fields().iter().find_map(|field| match field {
            Field::Tensors(tensors) => Some(tensors.as_slice()),
            _ => None,
        })
    }

    /// Returns the named tensors for changes: the parameters of an executor, or the variables of constants.
    pub fn params_mut(&mut self) -> Option<&mut Vec<(Text<'a>, TensorRecord<'a>)>> {
        self.fields_mut().iter_mut().find_map(|field| match field {
            Field::Tensors(tensors) => Some(tensors),
            _ => None,
        })
    }

    /// Returns the Relax VM executable for changes.
    pub fn relax_vm_mut(&mut self) -> Option<&mut relax_vm::RelaxExecutable<'a>> {
        match self.fields_mut().first_mut() {
            Some(Field::Relax(executable)) => Some(executable),
            _ => None,
        }
    }

    /// Returns the Relay VM executable, if the payload is one.
    pub fn relay_vm(&self) -> Option<&relay_vm::RelayExecutable<'a>> {
        match self.fields().first() {
            // PAY-60: the executable is the only slot of its form.
            Some(Field::Relay(executable)) => Some(executable),
            _ => None,
        }
    }
}
