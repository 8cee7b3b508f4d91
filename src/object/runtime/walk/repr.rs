//! The text form of any value (OBJ-13).

use super::depth;
use super::text::{float_short, quoted, quoted_bytes};
use crate::function::{Function, Result};
use crate::object::reflect::builtin::{enum_name, kwargs, missing};
use crate::object::reflect::column;
use crate::object::reflect::field_access::fields_of;
use crate::object::{big_int, extents_of, pairs_of, sequence_of};
use crate::value::header::ObjectRef;
use crate::value::types::{self, flag};
use crate::value::{
    Any, AnyView, DLTensor, bytes_bytes, cast, device_to_text, dtype_to_text, index, str_bytes,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Returns the text form of a value: Python-like literals, `key(field=...)` for objects, and `...` for an object inside itself.
///
/// # Errors
///
/// Returns a ValueError if values nest too deeply, and VAL-18 for a data type without a text. Returns the error of the `__ffi_repr__`
/// hook of an object's type.
pub fn repr(value: AnyView<'_>) -> Result<String> {
    let with_address = std::env::var("TVM_FFI_REPR_WITH_ADDR").is_ok_and(|set| set == "1");
    Printer {
        seen: Arc::default(),
        with_address,
    }
    .print(value, 0)
}

/// The texts of objects, so that a repeated object is printed once and recursion ends (OBJ-13).
type PrintedTexts = HashMap<usize, (ObjectRef, Option<String>)>;

/// The state of a printer. Hooks of types call back into it, so it is shared.
#[derive(Clone)]
struct Printer {
    /// By address: the finished text, or `None` while the object is being printed. The object is kept alive, so that no other gets its
    /// address.
    seen: Arc<Mutex<PrintedTexts>>,
    /// True if objects are followed by their address, because `TVM_FFI_REPR_WITH_ADDR` is `1` in the environment.
    with_address: bool,
}

impl Printer {
    /// Locks the texts, ignoring poison after a panic in a hook, because they change only by single insertions.
    fn seen(&self) -> MutexGuard<'_, PrintedTexts> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text of any value. `depth` counts the objects around it.
    fn print(&self, value: AnyView<'_>, depth: usize) -> Result<String> {
        let raw = value.as_raw();
        Ok(match raw.type_index {
            index::NONE => "None".into(),
            index::BOOL => if raw.int() != 0 { "True" } else { "False" }.into(),
            index::INT => raw.int().to_string(),
            index::FLOAT => float_short(raw.float()),
            index::DATA_TYPE => dtype_to_text(raw.dtype())?,
            index::DEVICE => device_to_text(raw.device()),
            index::SMALL_STR => quoted(str_bytes(&value).unwrap_or_default()),
            index::SMALL_BYTES => quoted_bytes(bytes_bytes(&value).unwrap_or_default()),
            own => match value.as_object() {
                Some(object) => self.object(object, depth)?,
                None => types::key_of(own).into(),
            },
        })
    }

    /// Returns `@0x...` for an object if addresses are shown, otherwise an empty text.
    fn address(&self, object: &ObjectRef) -> String {
        if self.with_address {
            format!("@{:#x}", object.as_ptr() as usize)
        } else {
            String::new()
        }
    }

    /// Returns the text of an object. A repeated object reuses its text, and an object inside itself prints as `...` (OBJ-13).
    fn object(&self, object: &ObjectRef, depth: usize) -> Result<String> {
        let at = object.as_ptr() as usize;
        // OBJ-13: the hook of a repeated object is called once, so its text is stored.
        if let Some((_, text)) = self.seen().get(&at) {
            return Ok(match text {
                Some(text) => text.clone(),
                None => format!("...{}", self.address(object)),
            });
        }
        depth::check(depth)?;
        // Not stored: a value without parts cannot contain itself.
        if let Some(text) = self.leaf(object)? {
            return Ok(text);
        }
        self.seen().insert(at, (object.clone(), None));
        let text = self.compound(object, depth)?;
        self.seen().insert(at, (object.clone(), Some(text.clone())));
        Ok(text)
    }

    /// Returns the text of an object without parts; `None` for other objects.
    fn leaf(&self, object: &ObjectRef) -> Result<Option<String>> {
        let view = AnyView::from(object);
        // The two sentinels are plain objects without their own type, so only their address identifies them.
        if object.as_ptr() == missing().as_ptr() {
            return Ok(Some("<MISSING>".into()));
        }
        if object.as_ptr() == kwargs().as_ptr() {
            return Ok(Some("<KWARGS>".into()));
        }
        Ok(Some(match object.type_index() {
            index::BIG_INT => big_int::to_decimal(big_int::words_of(&view).unwrap_or(&[])),
            index::STR => quoted(str_bytes(&view).unwrap_or_default()),
            index::BYTES => quoted_bytes(bytes_bytes(&view).unwrap_or_default()),
            index::TENSOR => {
                let tensor: *mut DLTensor = cast(view)?;
                // SAFETY: the description in a tensor, which lives while `object` does.
                let tensor = unsafe { &*tensor };
                // SAFETY: the description in a tensor object has as many extents as it says (OBJ-11).
                let shape = unsafe { tensor.shape() };
                let (dtype, device) = (tensor.dtype, tensor.device);
                format!(
                    "{}[{}]@{}{}",
                    dtype_to_text(dtype)?,
                    joined(shape),
                    device_to_text(device),
                    self.address(object)
                )
            }
            index::SHAPE => format!("Shape({})", joined(extents_of(view).unwrap_or_default())),
            _ => return Ok(None),
        }))
    }

    /// Returns the text of an object that may have parts.
    fn compound(&self, object: &ObjectRef, depth: usize) -> Result<String> {
        let view = AnyView::from(object);
        let type_index = object.type_index();
        if let Some(items) = sequence_of(view) {
            let texts = self.all(items.iter(), depth)?;
            let text = match (type_index, &texts[..]) {
                // OBJ-13: an array of one element has a comma, like a Python tuple.
                (index::ARRAY, [one]) => format!("({one},)"),
                (index::ARRAY, all) => format!("({})", all.join(", ")),
                (_, all) => format!("[{}]", all.join(", ")),
            };
            return Ok(text + &self.address(object));
        }
        if let Some(pairs) = pairs_of(view) {
            let mut texts = Vec::new();
            for (key, value) in &pairs {
                let key = self.print(key.view(), depth + 1)?;
                // OBJ-13: a key prints like any value, so that "1" and 1 differ.
                texts.push(format!("{key}: {}", self.print(value.view(), depth + 1)?));
            }
            return Ok(format!("{{{}}}", texts.join(", ")) + &self.address(object));
        }
        // The hook of a type takes precedence over its fields, but not over container syntax, which OBJ-13 fixes.
        if let Some(hook) = column::REPR.value(type_index) {
            // The callback shares the texts and adds one level, so that a hook that returns to its own object terminates.
            let printer = self.clone();
            let callback = Function::named(None, move |value: Any| {
                printer.print(value.view(), depth + 1)
            });
            let text = cast::<Function>(hook)?.call_packed(&[view, (&callback).into()])?;
            return Ok(cast::<String>(text.view())?);
        }
        let key = types::key_of(type_index);
        // An entry prints by its name, not by its fields, which all entries have.
        if let Some(name) = enum_name(object) {
            return Ok(format!("{key}.{name}{}", self.address(object)));
        }
        self.fields(object, depth)
    }

    /// Returns the texts of the elements of a sequence, one level deeper.
    fn all<'a>(&self, items: impl Iterator<Item = &'a Any>, depth: usize) -> Result<Vec<String>> {
        items
            .map(|item| self.print(item.view(), depth + 1))
            .collect()
    }

    /// Returns the text of an object by its fields, `key(name=value, ..)`, or only the key if no field prints.
    fn fields(&self, object: &ObjectRef, depth: usize) -> Result<String> {
        let mut texts: Vec<String> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for field in fields_of(object) {
            // A type may repeat the field name of an ancestor; only the ancestor's field prints.
            if field.flags & flag::REPR_OFF != 0 || names.contains(&field.name()) {
                continue;
            }
            names.push(field.name());
            let value = field.get()?;
            texts.push(format!(
                "{}={}",
                field.name(),
                self.print(value.view(), depth + 1)?
            ));
        }
        let head = format!(
            "{}{}",
            types::key_of(object.type_index()),
            self.address(object)
        );
        if texts.is_empty() {
            return Ok(head);
        }
        Ok(format!("{head}({})", texts.join(", ")))
    }
}

/// Returns extents separated by commas.
fn joined(extents: &[i64]) -> String {
    let texts: Vec<String> = extents.iter().map(i64::to_string).collect();
    texts.join(", ")
}
