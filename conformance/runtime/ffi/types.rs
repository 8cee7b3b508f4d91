//! Types, their fields and attributes, through the tvm-ffi C interface.

use super::api::FfiApi;
use super::owned::{OwnedValue, Raised};
use crate::value::types::{FieldInfo, TypeInfo};
use crate::value::{ByteArray, RawAny};
use std::sync::atomic::Ordering;

impl FfiApi {
    /// Returns the index of a registered type.
    pub(in crate::conformance) fn type_index(&'static self, key: &str) -> Option<i32> {
        let mut index = 0;
        // SAFETY: a key and an out pointer.
        let code = unsafe { (self.type_index)(&ByteArray::of(key.as_bytes()), &raw mut index) };
        self.check(code).is_ok().then_some(index)
    }

    /// Registers a type. One that does not fit is rejected with a negative index, or crashes the process.
    pub(in crate::conformance) fn new_type(
        &'static self,
        key: &str,
        [fixed, depth, slots, overflow, parent]: [i32; 5],
    ) -> Result<i32, Raised> {
        let key = ByteArray::of(key.as_bytes());
        // SAFETY: a key, which is copied, and numbers.
        let assigned = unsafe { (self.new_type)(&key, fixed, depth, slots, overflow, parent) };
        self.check(assigned.min(0))?;
        Ok(assigned)
    }

    /// Registers an attribute of a type.
    pub(in crate::conformance) fn set_attr(
        &'static self,
        type_index: i32,
        name: &str,
        value: &RawAny,
    ) -> Result<(), Raised> {
        let name = ByteArray::of(name.as_bytes());
        // SAFETY: a name, which is copied, and a value, which is counted.
        let code = unsafe { (self.set_attr)(type_index, &name, value) };
        self.check(code)
    }

    /// Returns the information about the type of a live object, or about a registered type.
    pub(in crate::conformance) fn type_info(&self, type_index: i32) -> Option<&'static TypeInfo> {
        // SAFETY: the function accepts any index.
        let info = unsafe { (self.type_info)(type_index) };
        // SAFETY: null where there is no type of that key, and types live as long as the process.
        unsafe { info.as_ref() }
    }

    /// Returns the field `name` of an object's type, by reflection.
    pub(in crate::conformance) fn field(
        &'static self,
        object: &OwnedValue,
        name: &str,
    ) -> Option<OwnedValue> {
        let info = self.type_info(object.raw.type_index)?;
        let count = usize::try_from(info.num_fields.load(Ordering::Acquire)).ok()?;
        let fields: *const FieldInfo = info.fields.load(Ordering::Acquire);
        for at in 0..count {
            // SAFETY: a type has `count` fields at that address, which live as long as the type.
            let field = unsafe { &*fields.wrapping_add(at) };
            // SAFETY: names live as long as their type.
            if unsafe { field.name.as_slice() } != name.as_bytes() {
                continue;
            }
            let offset = usize::try_from(field.offset).ok()?;
            let mut out = RawAny::NONE;
            let (getter, place) = (field.getter?, object.pointer().wrapping_byte_add(offset));
            // SAFETY: the getter is made for the field of this type, which lies at `offset` in the object.
            let code = unsafe { getter(place, &raw mut out) };
            self.check(code).ok()?;
            return Some(OwnedValue {
                api: self,
                raw: out,
            });
        }
        None
    }
}
