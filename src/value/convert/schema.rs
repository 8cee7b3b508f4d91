//! Names of types, for messages and for the metadata of functions.

/// How a type is named: `text` in messages and `schema` in the JSON of function metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The name: `int`, `ffi.String`, `Optional`, ...
    pub name: &'static str,
    /// Arguments of a generic type.
    pub args: Vec<Schema>,
}

impl Schema {
    /// A type without arguments.
    pub const fn plain(name: &'static str) -> Schema {
        Schema {
            name,
            args: Vec::new(),
        }
    }

    /// A generic type.
    pub fn of(name: &'static str, args: Vec<Schema>) -> Schema {
        Schema { name, args }
    }

    /// A generic type of the types of these.
    pub(crate) fn with(name: &'static str, args: &[fn() -> Schema]) -> Schema {
        Schema::of(name, args.iter().map(|schema| schema()).collect())
    }

    /// As messages write it: `Optional<int>`, `Array<Any>`.
    pub fn text(&self) -> String {
        let name = match self.name {
            // FUN-09: messages name text and bytes as those of C++ do; metadata has the type keys.
            "ffi.String" => "str",
            "ffi.Bytes" => "bytes",
            name if self.args.is_empty() => name,
            // FUN-09: as in messages of C++, where an `ffi.Array` with a type of elements is `Array<int>`.
            name => name.strip_prefix("ffi.").unwrap_or(name),
        };
        if self.args.is_empty() {
            return name.to_owned();
        }
        let args: Vec<String> = self.args.iter().map(Schema::text).collect();
        format!("{name}<{}>", args.join(", "))
    }

    /// As JSON: `{"type":"Optional","args":[{"type":"int"}]}`.
    pub fn json(&self) -> String {
        // FUN-09: `args` stands where something is known: an empty list would state that the type holds nothing.
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
