//! Type names for messages and for the metadata of functions.

/// The name of a type: `text` for messages, and `json` for the metadata of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The name: `int`, `ffi.String`, `Optional`, ...
    pub name: &'static str,
    /// Arguments of a generic type.
    pub args: Vec<Schema>,
}

impl Schema {
    /// Creates a type without arguments.
    pub const fn plain(name: &'static str) -> Schema {
        Schema {
            name,
            args: Vec::new(),
        }
    }

    /// Creates a generic type.
    pub fn of(name: &'static str, args: Vec<Schema>) -> Schema {
        Schema { name, args }
    }

    /// Creates a generic type from functions that return its arguments.
    pub(crate) fn with(name: &'static str, args: &[fn() -> Schema]) -> Schema {
        Schema::of(name, args.iter().map(|schema| schema()).collect())
    }

    /// Returns the name as in messages: `Optional<int>`, `Array<Any>`.
    pub fn text(&self) -> String {
        let name = match self.name {
            // FUN-09: messages use the names of C++ for text and bytes, but metadata uses the type keys.
            "ffi.String" => "str",
            "ffi.Bytes" => "bytes",
            name if self.args.is_empty() => name,
            // FUN-09: the same as in C++ messages, in which an `ffi.Array` with an element type is `Array<int>`.
            name => name.strip_prefix("ffi.").unwrap_or(name),
        };
        if self.args.is_empty() {
            return name.to_owned();
        }
        let args: Vec<String> = self.args.iter().map(Schema::text).collect();
        format!("{name}<{}>", args.join(", "))
    }

    /// Returns the name as JSON: `{"type":"Optional","args":[{"type":"int"}]}`.
    pub fn json(&self) -> String {
        // FUN-09: `args` is written only if it is known. An empty list would state that the type has no content.
        if self.args.is_empty() {
            return format!("{{\"type\":\"{}\"}}", self.name);
        }
        let args: Vec<String> = self.args.iter().map(Schema::json).collect();
        format!(
            "{{\"type\":\"{}\",\"args\":[{}]}}",
            self.name,
            args.join(",")
        )
    }
}
