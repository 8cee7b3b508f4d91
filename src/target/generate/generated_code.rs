//! The result of a code generator, and its JSON form.

use super::TGT_81;
use crate::payload::Payload;
use crate::rule::{Kind, Violation};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// The result of a generator: the stored module, its symbols, and the launch parameters of its kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedCode {
    /// The functions that a lookup by symbol finds.
    pub symbols: Vec<String>,
    /// The module, as it is stored.
    pub payload: Payload<'static>,
    kernels: Vec<KernelInfo>,
}

impl GeneratedCode {
    /// Creates code with these functions. Its kernels are those that the payload describes.
    pub fn new(symbols: &[&str], payload: Payload<'static>) -> GeneratedCode {
        let symbols = symbols.iter().map(|symbol| (*symbol).to_owned());
        let kernels = payload.functions().map(|(name, info)| KernelInfo {
            name: name.to_owned(),
            arg_types: info.arg_types.iter().map(ToString::to_string).collect(),
            launch_param_tags: info
                .launch_param_tags
                .iter()
                .map(|tag| tag.clone().into_owned())
                .collect(),
        });
        GeneratedCode {
            symbols: symbols.collect(),
            kernels: kernels.collect(),
            payload,
        }
        .sorted()
    }

    /// Sets the kernels, for a payload without a grammar, which describes none.
    #[must_use]
    pub fn with_kernels(mut self, kernels: Vec<KernelInfo>) -> GeneratedCode {
        self.kernels = kernels;
        self.sorted()
    }

    /// Reads the form of [`GeneratedCode::to_json`], as a generator in another language may write it. One of `payload`, `source`
    /// and `data` is required. `data` is base64 of a payload without a grammar. `kernels` is needed only if the payload describes
    /// none.
    ///
    /// # Errors
    ///
    /// Returns TGT-81 for an object without one of these or without `kind`; the errors of [`Payload::from_json`].
    pub fn from_json(form: &Value) -> Result<GeneratedCode, Violation> {
        let wrong = |why: &str| TGT_81.rejected(Kind::Malformed, format!("generated code: {why}"));
        let kind = text(form, "kind").ok_or_else(|| wrong("there is no `kind`"))?;
        // TGT-81: `payload` takes precedence. `to_json` also writes `source`, which alone would mean a payload without a grammar.
        let payload = match (
            form.get("payload"),
            text(form, "source"),
            text(form, "data"),
        ) {
            (Some(payload), ..) => Payload::from_json(payload)?,
            (None, Some(source), _) => opaque(kind, source.as_bytes().to_vec()),
            (None, None, Some(data)) => {
                let bytes = BASE64_STANDARD.decode(data);
                opaque(kind, bytes.map_err(|why| wrong(&why.to_string()))?)
            }
            _ => return Err(wrong("there is neither `payload`, `source` nor `data`")),
        };
        let symbols = texts(form, "functions");
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        let code = GeneratedCode::new(&symbols, payload);
        // TGT-85: for a payload without a grammar, nothing else describes its kernels.
        let Some(kernels) = form.get("kernels").and_then(Value::as_array) else {
            return Ok(code);
        };
        let kernels = kernels.iter().map(|kernel| KernelInfo {
            name: text(kernel, "name").unwrap_or_default().to_owned(),
            arg_types: texts(kernel, "arg_types"),
            launch_param_tags: texts(kernel, "launch_param_tags"),
        });
        Ok(code.with_kernels(kernels.collect()))
    }

    /// Returns `{"kind", "functions", "kernels", "payload", "source"}`; `source` is null for code that is not text.
    pub fn to_json(&self) -> Value {
        let kernels: Vec<Value> = self.kernels.iter().map(KernelInfo::form).collect();
        json!({
            "kind": self.payload.kind(),
            "functions": self.symbols,
            "kernels": kernels,
            "payload": self.payload.to_json(),
            "source": self.source(),
        })
    }

    /// Sorts the kernels, because results are compared (TGT-85, TGT-87), and generators state kernels in any order.
    fn sorted(mut self) -> GeneratedCode {
        self.kernels.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }

    /// Returns the source text, or `None` for code of another form.
    pub fn source(&self) -> Option<&str> {
        match &self.payload {
            Payload::Opaque { bytes, .. } => std::str::from_utf8(bytes).ok(),
            known => std::str::from_utf8(known.data()?).ok(),
        }
    }

    /// Returns the launch parameters of its kernels, sorted by name; empty for host code.
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
}

/// The launch parameters of a kernel (TGT-85).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// The symbol of the kernel.
    pub name: String,
    /// The dtypes of its parameters; an address is `handle`.
    pub arg_types: Vec<String>,
    /// The meaning of each argument after the parameters: `blockIdx.x`, `threadIdx.x`, ...
    pub launch_param_tags: Vec<String>,
}

impl KernelInfo {
    /// Returns the kernel as in the JSON form of a payload.
    fn form(&self) -> Value {
        json!({"name": self.name, "arg_types": self.arg_types, "launch_param_tags": self.launch_param_tags})
    }
}

/// Returns a text member.
fn text<'a>(form: &'a Value, name: &str) -> Option<&'a str> {
    form.get(name).and_then(Value::as_str)
}

/// Returns the texts of a list; empty if it is missing.
fn texts(form: &Value, name: &str) -> Vec<String> {
    let items = form.get(name).and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Creates the payload of a kind without a grammar: its unchanged bytes (PAY-01).
fn opaque(kind: &str, bytes: Vec<u8>) -> Payload<'static> {
    Payload::Opaque {
        kind: kind.to_owned().into(),
        bytes: bytes.into(),
    }
}
