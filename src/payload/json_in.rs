//! Values of JSON that are read by a known form, each with its path.

use super::{Binary, PAY_01, Text};
use crate::rule::{Kind, Violation};
use crate::tensor::json::{to_device, to_dtype};
use crate::tensor::{Device, Dtype, Sizing, TensorRecord};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;
use std::borrow::Cow;

/// A tensor in the form of the chapter `tensor`.
pub(super) fn tensor_from(
    item: &JsonPlace<'_>,
    sizing: Sizing,
) -> Result<TensorRecord<'static>, Violation> {
    let dtype = item.at("dtype")?.dtype()?;
    let shape = item.list("shape", |item| item.i64())?;
    let data = item.at("data")?.base64()?;
    // Held to its rules again: shape and data are apart in JSON, and may have been edited apart.
    let tensor = TensorRecord::new(dtype, &shape, data, sizing)?;
    let reserved = item.maybe("reserved").map(|word| word.u64()).transpose()?;
    Ok(tensor
        .with_device(item.at("device")?.device()?)
        .with_reserved(reserved.unwrap_or(0)))
}

/// Bytes in base64 of the standard alphabet, padded.
pub(super) fn base64(bytes: &[u8]) -> Value {
    Value::String(BASE64_STANDARD.encode(bytes))
}

/// A value that is not of its form: PAY-01, kind type, without an offset, because it was never bytes.
pub(super) fn wrong(message: String) -> Violation {
    PAY_01.rejected(Kind::Type, message)
}

/// A JSON value that is read by a known form, and where it is.
pub(super) struct JsonPlace<'v> {
    /// What the JSON has there.
    pub(super) value: &'v Value,
    /// Its path from the payload, as messages show it.
    path: String,
}

impl<'v> JsonPlace<'v> {
    /// A value that is at `path`, as messages show it: `payload.functions[0].name`.
    pub(super) fn new(value: &'v Value, path: impl Into<String>) -> JsonPlace<'v> {
        JsonPlace {
            value,
            path: path.into(),
        }
    }

    /// The member `name`, if there is one.
    pub(super) fn maybe(&self, name: &str) -> Option<JsonPlace<'v>> {
        // Null is as good as absent: other languages write members that have no value.
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(JsonPlace::new(value, format!("{}.{name}", self.path)))
    }

    /// The member `name`.
    pub(super) fn at(&self, name: &str) -> Result<JsonPlace<'v>, Violation> {
        self.maybe(name)
            .ok_or_else(|| wrong(format!("{} has no `{name}`", self.path)))
    }

    /// Every element through `read`.
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

    /// Every element of member `name` through `read`.
    pub(super) fn list<T>(
        &self,
        name: &str,
        read: impl FnMut(JsonPlace<'v>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        self.at(name)?.all(read)
    }

    /// The member `name`, a text.
    pub(super) fn text(&self, name: &str) -> Result<Text<'static>, Violation> {
        self.at(name)?.as_text()
    }

    /// The member `name`, a list of texts.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<Text<'static>>, Violation> {
        self.list(name, |item| item.as_text())
    }

    /// This value, a text.
    pub(super) fn as_text(&self) -> Result<Text<'static>, Violation> {
        let text = self.value.as_str().ok_or_else(|| self.wrong("a text"))?;
        Ok(Cow::Owned(text.to_owned()))
    }

    /// This value, bytes in base64.
    pub(super) fn base64(&self) -> Result<Binary<'static>, Violation> {
        let bytes = self
            .value
            .as_str()
            .and_then(|text| BASE64_STANDARD.decode(text).ok());
        // One reading of each text: padding and unused bits are those that writing makes.
        bytes.map(Cow::Owned).ok_or_else(|| self.wrong("base64"))
    }

    /// The bytes of `source`, where it is there, or of `data`.
    pub(super) fn code(&self) -> Result<Binary<'static>, Violation> {
        // A text is the bytes of its UTF-8, whatever JSON escaped in it.
        if let Some(source) = self.maybe("source") {
            let text = source.as_text()?.into_owned();
            return Ok(Cow::Owned(text.into_bytes()));
        }
        self.at("data")?.base64()
    }

    /// This value, from -2^63 to 2^63 - 1.
    pub(super) fn i64(&self) -> Result<i64, Violation> {
        self.value
            .as_i64()
            .ok_or_else(|| self.wrong("a 64-bit integer"))
    }

    /// This value, from 0 to 2^64 - 1.
    pub(super) fn u64(&self) -> Result<u64, Violation> {
        self.value
            .as_u64()
            .ok_or_else(|| self.wrong("an unsigned 64-bit integer"))
    }

    /// This value, from -2^31 to 2^31 - 1.
    pub(super) fn i32(&self) -> Result<i32, Violation> {
        // By way of 64 bits: a number that does not fit is an error, not another number.
        i32::try_from(self.i64()?).map_err(|_| self.wrong("a 32-bit integer"))
    }

    /// This value, from 0 to 2^32 - 1.
    pub(super) fn u32(&self) -> Result<u32, Violation> {
        u32::try_from(self.u64()?).map_err(|_| self.wrong("an unsigned 32-bit integer"))
    }

    /// This value, a dtype as text or as `[code, bits, lanes]`.
    pub(super) fn dtype(&self) -> Result<Dtype, Violation> {
        to_dtype(self.value).map_err(|_| self.wrong("a dtype"))
    }

    /// `[type, index]`.
    pub(super) fn device(&self) -> Result<Device, Violation> {
        to_device(self.value).map_err(|_| self.wrong("[device type, index]"))
    }

    /// The violation of this value, which should have been what `expected` names.
    pub(super) fn wrong(&self, expected: &str) -> Violation {
        wrong(format!("{} is not {expected}", self.path))
    }
}
