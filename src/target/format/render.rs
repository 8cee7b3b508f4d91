//! Export of targets as objects and as text.

use super::command_line::is_quoted;
use super::{Target, TargetConfig};
use crate::rule::{Kind, Violation};
use crate::target::TGT_63;
use serde_core::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};

impl Target {
    /// Returns the object that reads back as this target (TGT-60): kind, tag, keys, the host if there is one, and every option. It
    /// is also the JSON form of a target.
    pub fn export(&self) -> TargetConfig {
        match json!(self) {
            Value::Object(config) => config,
            _ => TargetConfig::new(),
        }
    }

    /// Returns [`Target::export`] as text.
    pub fn export_text(&self) -> String {
        // All names are text and all numbers exist in JSON, so this does not fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns `{"release", "target", "device_type", "text"}`, as the release reads the target; `text` is null if
    /// [`Target::render`] fails.
    pub fn to_json(&self) -> Value {
        json!({
            "release": self.release.to_string(),
            "target": self,
            "device_type": self.device_type,
            "text": self.render().ok(),
        })
    }

    /// Returns the text of the target in its release. Up to 0.6 this is its name and words (TGT-14), up to 0.23 a command line
    /// (TGT-61, TGT-62), and from 0.24 on JSON (TGT-64).
    ///
    /// # Errors
    ///
    /// Returns TGT-63 if a command line of 0.10 to 0.23 cannot express the value of an option.
    pub fn render(&self) -> Result<String, Violation> {
        // TGT-64: the JSON text reads back as the same target, which was never true of a command line.
        if self.release.minor() >= 24 {
            return Ok(self.export_text());
        }
        let mut text = self.kind.clone();
        // TGT-14: keys are derived from the words, and would be repeated when the text is read again.
        if self.release.minor() < 7 {
            for word in self
                .attrs
                .get("options")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                text.push(' ');
                text.push_str(word.as_str().unwrap_or_default());
            }
            return Ok(text);
        }
        if !self.keys.is_empty() {
            text.push_str(" -keys=");
            text.push_str(&self.keys.join(","));
        }
        let mut words = Vec::new();
        for (name, value) in &self.attrs {
            if let Some(value) = self.option_argument(value)? {
                words.push(format!("-{name}={value}"));
            }
        }
        // TGT-61: from 0.10 on the space is written even without options.
        if !words.is_empty() || self.release.minor() >= 10 {
            text.push(' ');
            text.push_str(&match self.release.minor() {
                ..10 => self.joined(&words, ' '),
                _ => words.join(" "),
            });
        }
        Ok(text)
    }

    /// Returns the value of an option in a command line, or `None` if the option is omitted.
    fn option_argument(&self, value: &Value) -> Result<Option<String>, Violation> {
        // TGT-61: up to 0.9 a value without a text form is omitted, and so is a list with such an item.
        if self.release.minor() < 10 {
            let Value::Array(items) = value else {
                return Ok(single_word_text(value));
            };
            let items: Option<Vec<String>> = items.iter().map(single_word_text).collect();
            return Ok(items
                .filter(|items| !items.is_empty())
                .map(|items| self.joined(&items, ',')));
        }
        let text = match value {
            Value::Array(items) => {
                let items: Result<Vec<String>, Violation> = items
                    .iter()
                    .map(|item| Ok(quoted(&atom(item)?, ',')))
                    .collect();
                items?.join(",")
            }
            value => atom(value)?,
        };
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// Joins parts as releases up to 0.9 do. A part is quoted if it contains the separator or a quote. 0.7 has no quotes.
    fn joined(&self, parts: &[String], separator: char) -> String {
        let quote = |part: &String| {
            if part.contains([separator, '\'']) && self.release.minor() > 7 {
                format!("'{}'", part.replace('\'', "\\'"))
            } else {
                part.clone()
            }
        };
        parts
            .iter()
            .map(quote)
            .collect::<Vec<_>>()
            .join(&String::from(separator))
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut config = serializer.serialize_map(None)?;
        config.serialize_entry("kind", &self.kind)?;
        config.serialize_entry("tag", &self.tag)?;
        config.serialize_entry("keys", &self.keys)?;
        // TGT-60: a `null` member is omitted, because TGT-41 would reject it when it is read again.
        if let Some(host) = &self.host {
            config.serialize_entry("host", host)?;
        }
        for (name, value) in &self.attrs {
            config.serialize_entry(name, value)?;
        }
        config.end()
    }
}

/// Returns the text of a value that is one word, or `None` for other values.
fn single_word_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // TGT-61: TGT-27 reads this as a bool again.
        Value::Bool(truth) => Some(u8::from(*truth).to_string()),
        Value::Number(number) if number.is_i64() => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the text of a value from 0.10 on (TGT-62).
fn atom(value: &Value) -> Result<String, Violation> {
    match (value, single_word_text(value)) {
        (Value::String(text), _) => Ok(quoted(text, ' ')),
        (_, Some(text)) => Ok(text),
        // TGT-63: a target inside an option. Upstream's printing of a composite target with devices fails here.
        _ => Err(TGT_63.rejected(
            Kind::Unsupported,
            format!("Cannot stringify this object: {value}"),
        )),
    }
}

/// Escapes quotes and backslashes, and quotes the text if it contains `separator`.
fn quoted(text: &str, separator: char) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | '\'') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    // TGT-62: upstream checks the escaped text, in which every quote follows a backslash.
    if escaped.contains(separator) && !is_quoted(&escaped) {
        return format!("'{escaped}'");
    }
    escaped
}
