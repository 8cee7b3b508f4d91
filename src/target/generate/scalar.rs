//! Types and literals in C.

/// The type of a value. Vectors have none here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarType {
    Bool,
    /// Bits.
    Int(u8),
    /// Bits.
    UInt(u8),
    /// Bits.
    Float(u8),
    /// An address, of whatever.
    Handle,
    Void,
}

impl ScalarType {
    /// By the name of a dtype; `None` for what C has no type for.
    pub(super) fn of(dtype: &str) -> Option<ScalarType> {
        Some(match dtype {
            "bool" | "uint1" => ScalarType::Bool,
            "handle" => ScalarType::Handle,
            "void" | "" => ScalarType::Void,
            "int8" => ScalarType::Int(8),
            "int16" => ScalarType::Int(16),
            "int32" => ScalarType::Int(32),
            "int64" => ScalarType::Int(64),
            "uint8" => ScalarType::UInt(8),
            "uint16" => ScalarType::UInt(16),
            "uint32" => ScalarType::UInt(32),
            "uint64" => ScalarType::UInt(64),
            "float32" => ScalarType::Float(32),
            "float64" => ScalarType::Float(64),
            _ => return None,
        })
    }

    /// Its name as a dtype.
    pub(super) fn dtype_name(self) -> String {
        match self {
            ScalarType::Bool => "bool".to_owned(),
            ScalarType::Int(bits) => format!("int{bits}"),
            ScalarType::UInt(bits) => format!("uint{bits}"),
            ScalarType::Float(bits) => format!("float{bits}"),
            ScalarType::Handle => "handle".to_owned(),
            ScalarType::Void => "void".to_owned(),
        }
    }

    /// Its name in C. A truth value takes a byte, as in tensors.
    pub(super) fn c_name(self) -> &'static str {
        match self {
            ScalarType::Bool | ScalarType::UInt(8) => "uint8_t",
            ScalarType::Int(8) => "int8_t",
            ScalarType::Int(16) => "int16_t",
            ScalarType::Int(64) => "int64_t",
            ScalarType::Int(_) => "int32_t",
            ScalarType::UInt(16) => "uint16_t",
            ScalarType::UInt(64) => "uint64_t",
            ScalarType::UInt(_) => "uint32_t",
            ScalarType::Float(64) => "double",
            ScalarType::Float(_) => "float",
            ScalarType::Handle => "void*",
            ScalarType::Void => "void",
        }
    }

    /// Whether C computes with more bits than it has, and the result has to be cut.
    pub(super) fn is_promoted(self) -> bool {
        matches!(self, ScalarType::Int(8 | 16) | ScalarType::UInt(8 | 16))
    }

    /// An integer of this type.
    pub(super) fn integer(self, value: i64) -> String {
        match self {
            // No literal of C is negative: the smallest is one less than the next.
            // A cast is one in every dialect; the suffix for 64 bits is not.
            ScalarType::Int(64) if i32::try_from(value).is_ok() => format!("((int64_t){value})"),
            ScalarType::Int(64) if value == i64::MIN => "(-9223372036854775807LL - 1)".to_owned(),
            ScalarType::Int(64) if value < 0 => format!("({value}LL)"),
            ScalarType::Int(64) => format!("{value}LL"),
            ScalarType::UInt(64) => format!("{}ULL", value.cast_unsigned()),
            ScalarType::UInt(32) => format!("{value}U"),
            ScalarType::Int(32) if value == i64::from(i32::MIN) => "(-2147483647 - 1)".to_owned(),
            _ if value < 0 => format!("({value})"),
            _ => value.to_string(),
        }
    }

    /// A number with a fraction, of this type: the shortest text that reads back as the same.
    pub(super) fn fraction(self, value: f64) -> String {
        let suffix = if self == ScalarType::Float(64) {
            ""
        } else {
            "f"
        };
        if value.is_nan() {
            return "NAN".to_owned();
        }
        if value.is_infinite() {
            return if value > 0.0 {
                "INFINITY"
            } else {
                "(-INFINITY)"
            }
            .to_owned();
        }
        let text = format!("{value:e}{suffix}");
        if value.is_sign_negative() {
            format!("({text})")
        } else {
            text
        }
    }
}

/// A text as a literal of C.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            // Three figures, so that a figure behind it is none of it; and two question marks are no trigraph.
            b'?' | 0..=31 | 127.. => out.push_str(&format!("\\{byte:03o}")),
            _ => out.push(char::from(byte)),
        }
    }
    out.push('"');
    out
}

/// A name that C takes, made of any.
pub(super) fn identifier(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut out: String = name.chars().map(letter).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, 'v');
    }
    out
}
