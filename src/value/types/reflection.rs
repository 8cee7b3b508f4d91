//! Registration of reflection data of a type: fields, methods, metadata, attributes (VAL-15).

use super::table::{leak_bytes, published, writer};
use super::{Column, FieldInfo, MethodInfo, TypeInfo, TypeMetadata, info, key_of};
use crate::rule::{Kind, Violation};
use crate::value::string::ByteArray;
use crate::value::{Any, VAL_15, index};
use std::sync::atomic::Ordering;

/// Returns the attribute column `name`, if anything was ever registered in it.
pub fn column(name: &str) -> Option<&'static Column> {
    writer().column(name.as_bytes())
}

/// Sets attribute `name` of a type, once. Index 0 only creates the column. Rejects an opaque pointer, because pointer attributes are
/// called as C functions, and nothing proves that this pointer is one.
///
/// # Errors
///
/// Returns VAL-15: unknown-kind if no type has this index, duplicate if the type already has the attribute, and type for an opaque pointer.
pub fn set_attr(type_index: i32, name: &str, value: Any) -> Result<(), Violation> {
    if value.type_index() == index::OPAQUE {
        let message = format!("TypeAttr `{name}` is a bare pointer, which only C may register");
        return Err(VAL_15.rejected(Kind::Type, message));
    }
    // SAFETY: not an opaque pointer.
    unsafe { set_any_attr(type_index, name, value) }
}

/// Like [`set_attr`], for any value.
///
/// # Safety
/// An opaque pointer is the address of a C function that follows the convention of the attribute, forever.
pub(crate) unsafe fn set_any_attr(
    type_index: i32,
    name: &str,
    value: Any,
) -> Result<(), Violation> {
    let mut writer = writer();
    // VAL-15: checked before the column is created, because a registration that fails changes nothing.
    if published(type_index).is_none() {
        let message = format!("no type has index {type_index}, so that it cannot have `{name}`");
        return Err(VAL_15.rejected(Kind::UnknownKind, message));
    }
    let column = match writer.column(name.as_bytes()) {
        Some(column) => column,
        None => {
            let column: &'static Column = Box::leak(Box::new(Column::new()));
            let name = leak_bytes(name.as_bytes());
            writer.columns.push((name, column));
            column
        }
    };
    // VAL-15: index 0 only creates the column.
    if type_index == index::NONE {
        return Ok(());
    }
    // VAL-15: an attribute that is None counts as absent, and may be registered again.
    if column.value(type_index).is_some() {
        return Err(VAL_15.rejected(
            Kind::Duplicate,
            format!(
                "TypeAttr `{name}` is already registered for type `{}` (index {type_index})",
                key_of(type_index)
            ),
        ));
    }
    column.set_attribute(type_index as usize, value);
    Ok(())
}

/// Appends a field.
///
/// # Safety
/// * The strings of `field` are readable during the call. They are copied.
/// * Every object of the type, and of types derived from it, has the field at `offset` from its header. `getter` reads it, and `setter`
///   writes it (a function of its kind, or a function object if the flag says so). It is a cell, a reference or plain memory according to
///   `static_type_index` and `size`.
/// * `default`, and a setter that is a function object, are valid forever.
pub(crate) unsafe fn push_field(type_index: i32, mut field: FieldInfo) -> Result<(), Violation> {
    let _writer = writer();
    let info = find_type(type_index)?;
    // SAFETY: the first clause of this contract.
    field.name = unsafe { leak_text(field.name) };
    let name = field.name();
    // VAL-15: only the type's own fields are checked. A name that an ancestor also has is accepted; upstream warns.
    if info.fields().iter().any(|known| known.name() == name) {
        return Err(VAL_15.rejected(
            Kind::Duplicate,
            format!("type `{}` already has a field `{name}`", info.key()),
        ));
    }
    // SAFETY: the first clause of this contract.
    field.doc = unsafe { leak_text(field.doc) };
    // SAFETY: the first clause of this contract.
    field.metadata = unsafe { leak_text(field.metadata) };
    // A new list for each field. The old one is kept, because readers take no lock and may be using it.
    let mut list = info.fields().to_vec();
    list.push(field);
    let count = list.len() as i32;
    info.fields
        .store(Vec::leak(list).as_mut_ptr(), Ordering::Release);
    info.num_fields.store(count, Ordering::Release);
    Ok(())
}

/// Appends a method. If a name repeats, both are listed and the later one counts.
///
/// # Safety
/// The strings of `method` are readable during the call and are copied. The function is valid forever.
pub(crate) unsafe fn push_method(type_index: i32, mut method: MethodInfo) -> Result<(), Violation> {
    let _writer = writer();
    let info = find_type(type_index)?;
    // SAFETY: readable during the call, by this contract.
    method.name = unsafe { leak_text(method.name) };
    // SAFETY: readable during the call, by this contract.
    method.doc = unsafe { leak_text(method.doc) };
    // SAFETY: readable during the call, by this contract.
    method.metadata = unsafe { leak_text(method.metadata) };
    let mut list = info.methods().to_vec();
    list.push(method);
    let count = list.len() as i32;
    info.methods
        .store(Vec::leak(list).as_mut_ptr(), Ordering::Release);
    info.num_methods.store(count, Ordering::Release);
    Ok(())
}

/// Sets the metadata, once.
///
/// # Safety
/// The documentation is readable during the call and is copied. `creator` creates an object of the type, and `total_size` does not exceed
/// the size of any object of the type.
pub(crate) unsafe fn set_metadata(
    type_index: i32,
    mut metadata: TypeMetadata,
) -> Result<(), Violation> {
    let _writer = writer();
    let info = find_type(type_index)?;
    if info.metadata().is_some() {
        return Err(VAL_15.rejected(
            Kind::Duplicate,
            format!(
                "Overriding `{}`, possible causes:\n- two object definitions with the same type key\n- a library was loaded twice",
                info.key()
            ),
        ));
    }
    // SAFETY: readable during the call, by this contract.
    metadata.doc = unsafe { leak_text(metadata.doc) };
    info.metadata
        .store(Box::leak(Box::new(metadata)), Ordering::Release);
    Ok(())
}

fn find_type(type_index: i32) -> Result<&'static TypeInfo, Violation> {
    info(type_index).ok_or_else(|| {
        VAL_15.rejected(
            Kind::UnknownKind,
            format!("unknown type index {type_index}"),
        )
    })
}

/// Copies a text to memory that is never freed.
///
/// # Safety
/// `text` describes bytes that are readable during the call.
unsafe fn leak_text(text: ByteArray) -> ByteArray {
    // SAFETY: readable during the call, by this contract.
    ByteArray::of(leak_bytes(unsafe { text.as_slice() }))
}
