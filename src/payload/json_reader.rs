//! Typed access to JSON values, with the path of each for messages.

use super::{Binary, PAY_01, Text};
use crate::rule::{Kind, Violation};
use crate::tensor::json::{to_device, to_dtype};
use crate::tensor::{Device, Dtype, Sizing, TensorRecord};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;
use std::borrow::Cow;

/// Reads a tensor in the form of chapter `tensor`.
pub(super) fn tensor_from(
    item: &JsonPlace<'_>,
    sizing: Sizing,
) -> Result<TensorRecord<'static>, Violation> {
    let dtype = item.member("dtype")?.dtype()?;
    let shape = item.list("shape", |item| item.i64())?;
    let data = item.member("data")?.base64()?;
    // The rules are checked again, because shape and data are separate members and may have been edited separately.
    let tensor = TensorRecord::new(dtype, &shape, data, sizing)?;
    let reserved = item
        .optional_member("reserved")
        .map(|word| word.u64())
        .transpose()?;
    Ok(tensor
        .with_device(item.member("device")?.device()?)
        .with_reserved(reserved.unwrap_or(0)))
}

/// Encodes bytes in base64, with the standard alphabet and padding.
pub(super) fn base64(bytes: &[u8]) -> Value {
    Value::String(BASE64_STANDARD.encode(bytes))
}

/// Creates the violation for a value of a wrong form: PAY-01, kind type. It has no offset, because the value was never in bytes.
pub(super) fn type_violation(message: String) -> Violation {
    PAY_01.rejected(Kind::Type, message)
}

/// A JSON value with its path.
pub(super) struct JsonPlace<'v> {
    /// The JSON value.
    pub(super) value: &'v Value,
    /// The path from the payload, as messages show it.
    path: String,
}

impl<'v> JsonPlace<'v> {
    /// Creates the place of a value. Messages show `path`, for example `payload.functions[0].name`.
    pub(super) fn new(value: &'v Value, path: impl Into<String>) -> JsonPlace<'v> {
        JsonPlace {
            value,
            path: path.into(),
        }
    }

    /// Returns the member `name`, if it exists.
    pub(super) fn optional_member(&self, name: &str) -> Option<JsonPlace<'v>> {
        // Null counts as absent, because other languages write null for members without a value.
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(JsonPlace::new(value, format!("{}.{name}", self.path)))
    }

    /// Returns the member `name`.
    pub(super) fn member(&self, name: &str) -> Result<JsonPlace<'v>, Violation> {
        self.optional_member(name)
            .ok_or_else(|| type_violation(format!("{} has no `{name}`", self.path)))
    }

    /// Reads every element with `read`.
    pub(super) fn all<T>(
        &self,
        mut read: impl FnMut(JsonPlace<'v>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let items = list.iter().enumerate();
        items
            .map(|(index, item)| read(JsonPlace::new(item, format!("{}[{index}]", self.path))))
            .collect()
    }

    /// Reads every element of member `name` with `read`.
    pub(super) fn list<T>(
        &self,
        name: &str,
        read: impl FnMut(JsonPlace<'v>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        self.member(name)?.all(read)
    }

    /// Returns the member `name` as text.
    pub(super) fn text(&self, name: &str) -> Result<Text<'static>, Violation> {
        self.member(name)?.as_text()
    }

    /// Returns the member `name` as a list of texts.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<Text<'static>>, Violation> {
        self.list(name, |item| item.as_text())
    }

    /// Returns this value as text.
    pub(super) fn as_text(&self) -> Result<Text<'static>, Violation> {
        let text = self.value.as_str().ok_or_else(|| self.wrong("a text"))?;
        Ok(Cow::Owned(text.to_owned()))
    }

    /// Decodes this value from base64.
    pub(super) fn base64(&self) -> Result<Binary<'static>, Violation> {
        let bytes = self
            .value
            .as_str()
            .and_then(|text| BASE64_STANDARD.decode(text).ok());
        // Only the form that writing produces is accepted, also for padding and unused bits.
        bytes.map(Cow::Owned).ok_or_else(|| self.wrong("base64"))
    }

    /// Returns the bytes of `source` if it exists, otherwise of `data`.
    pub(super) fn code(&self) -> Result<Binary<'static>, Violation> {
        // A text represents its bytes in UTF-8, after JSON escapes are resolved.
        if let Some(source) = self.optional_member("source") {
            let text = source.as_text()?.into_owned();
            return Ok(Cow::Owned(text.into_bytes()));
        }
        self.member("data")?.base64()
    }

    /// Returns this value as an integer from -2^63 to 2^63 - 1.
    pub(super) fn i64(&self) -> Result<i64, Violation> {
        self.value
            .as_i64()
            .ok_or_else(|| self.wrong("a 64-bit integer"))
    }

    /// Returns this value as an integer from 0 to 2^64 - 1.
    pub(super) fn u64(&self) -> Result<u64, Violation> {
        self.value
            .as_u64()
            .ok_or_else(|| self.wrong("an unsigned 64-bit integer"))
    }

    /// Returns this value as an integer from -2^31 to 2^31 - 1.
    pub(super) fn i32(&self) -> Result<i32, Violation> {
        // Converted from 64 bits, so that a number that does not fit is an error.
        i32::try_from(self.i64()?).map_err(|_| self.wrong("a 32-bit integer"))
    }

    /// Returns this value as an integer from 0 to 2^32 - 1.
    pub(super) fn u32(&self) -> Result<u32, Violation> {
        u32::try_from(self.u64()?).map_err(|_| self.wrong("an unsigned 32-bit integer"))
    }

    /// Returns this value as a dtype, from text or from `[code, bits, lanes]`.
    pub(super) fn dtype(&self) -> Result<Dtype, Violation> {
        to_dtype(self.value).map_err(|_| self.wrong("a dtype"))
    }

    /// Returns this value as a device, from `[type, index]`.
    pub(super) fn device(&self) -> Result<Device, Violation> {
        to_device(self.value).map_err(|_| self.wrong("[device type, index]"))
    }

    /// Creates the violation for this value, which is not of the `expected` form.
    pub(super) fn wrong(&self, expected: &str) -> Violation {
        type_violation(format!("{} is not {expected}", self.path))
    }
}
