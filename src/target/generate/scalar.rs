//! Types and literals in C.

use super::helper_text::Converter;

/// The type of a value, or of each lane of one that is a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarType {
    Bool,
    /// Bits.
    Int(u8),
    /// Bits.
    UInt(u8),
    /// Bits. Of 16: C computes with a `float` that has a value of this type, and memory has its bits.
    Float(u8),
    /// 16 bits, the upper half of a `float`; as [`ScalarType::Float`] of 16.
    BFloat,
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
            "float16" => ScalarType::Float(16),
            "bfloat16" => ScalarType::BFloat,
            "float32" => ScalarType::Float(32),
            "float64" => ScalarType::Float(64),
            _ => return None,
        })
    }

    /// By the name of a dtype that may be a vector: the type of a lane, and how many there are.
    pub(super) fn of_lanes(dtype: &str) -> Option<(ScalarType, u16)> {
        // TGT-88: `float32xvscalex4` has as many lanes as the processor chooses, and no size here.
        let vector = dtype
            .split_once('x')
            .and_then(|(lane, lanes)| Some((ScalarType::of(lane)?, lanes.parse().ok()?)));
        match vector {
            Some((ScalarType::Void, _) | (_, 0..=1)) => None,
            Some(vector) => Some(vector),
            None => ScalarType::of(dtype).map(|scalar| (scalar, 1)),
        }
    }

    /// Its name as a dtype.
    pub(super) fn dtype_name(self) -> String {
        match self {
            ScalarType::Bool => "bool".to_owned(),
            ScalarType::Int(bits) => format!("int{bits}"),
            ScalarType::UInt(bits) => format!("uint{bits}"),
            ScalarType::Float(bits) => format!("float{bits}"),
            ScalarType::BFloat => "bfloat16".to_owned(),
            ScalarType::Handle => "handle".to_owned(),
            ScalarType::Void => "void".to_owned(),
        }
    }

    /// Its name in C where it is in memory.
    pub(super) fn memory_name(self) -> &'static str {
        match self {
            ScalarType::Float(16) | ScalarType::BFloat => "uint16_t",
            _ => self.c_name(),
        }
    }

    /// Its name in C where it is computed with. A truth value takes a byte, as in tensors.
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
            ScalarType::Float(_) | ScalarType::BFloat => "float",
            ScalarType::Handle => "void*",
            ScalarType::Void => "void",
        }
    }

    /// Whether C computes with more bits than it has, and the result has to be cut.
    pub(super) fn is_promoted(self) -> bool {
        matches!(self, ScalarType::Int(8 | 16) | ScalarType::UInt(8 | 16))
    }

    /// Whether C has no type for it that every compiler knows: software converts.
    pub(super) fn is_half(self) -> bool {
        matches!(self, ScalarType::Float(16) | ScalarType::BFloat)
    }

    /// What the names of the functions begin with that convert this type and its bits; `None` for a type that is its bits.
    pub(super) fn converter(self) -> Option<Converter> {
        Some(match self {
            ScalarType::Float(16) => Converter::F16,
            ScalarType::BFloat => Converter::Bf16,
            ScalarType::Float(32) => Converter::F32,
            ScalarType::Float(64) => Converter::F64,
            _ => return None,
        })
    }

    /// How many bits it has in memory.
    pub(super) fn bits(self) -> Option<u8> {
        match self {
            ScalarType::Bool => Some(8),
            ScalarType::Int(bits) | ScalarType::UInt(bits) | ScalarType::Float(bits) => Some(bits),
            ScalarType::BFloat => Some(16),
            ScalarType::Handle | ScalarType::Void => None,
        }
    }

    /// The same with as many bits and no sign, where that is another type.
    pub(super) fn unsigned(self) -> Option<ScalarType> {
        match self {
            ScalarType::Int(bits) => Some(ScalarType::UInt(bits)),
            _ => None,
        }
    }

    /// An integer of this type; `None` for one that the type has not.
    pub(super) fn integer(self, value: i128) -> Option<String> {
        let (least, most) = match self {
            ScalarType::Int(8) => (i8::MIN.into(), i8::MAX.into()),
            ScalarType::Int(16) => (i16::MIN.into(), i16::MAX.into()),
            ScalarType::Int(32) => (i32::MIN.into(), i32::MAX.into()),
            ScalarType::UInt(8) => (0, u8::MAX.into()),
            ScalarType::UInt(16) => (0, u16::MAX.into()),
            ScalarType::UInt(32) => (0, u32::MAX.into()),
            // Up to 0.26 the number has 64 bits with a sign, whatever the type has.
            ScalarType::UInt(_) => (i64::MIN.into(), u64::MAX.into()),
            _ => (i64::MIN.into(), i64::MAX.into()),
        };
        if !(least..=most).contains(&value) {
            return None;
        }
        Some(match self {
            // No literal of C is negative: the smallest is one less than the next.
            // A cast is one in every dialect, and a literal has the first type that holds it; the suffix for 64 bits differs.
            ScalarType::Int(64) if i32::try_from(value).is_ok() => format!("((int64_t){value})"),
            ScalarType::Int(64) if value == i128::from(i64::MIN) => {
                "(-9223372036854775807 - 1)".to_owned()
            }
            ScalarType::UInt(64) => format!("((uint64_t){}U)", value.rem_euclid(1 << 64)),
            ScalarType::UInt(32) => format!("{value}U"),
            ScalarType::Int(32) if value == i128::from(i32::MIN) => "(-2147483647 - 1)".to_owned(),
            _ if value < 0 => format!("({value})"),
            _ => value.to_string(),
        })
    }

    /// A number with a fraction, of this type: the shortest text that reads back as the same.
    pub(super) fn fraction(self, value: f64) -> String {
        // A literal of C is rounded to a `float`, and a second time is once too often.
        let value = match self {
            _ if !value.is_finite() => value,
            ScalarType::Float(16) => rounded(value, 2f64.powi(-10), 2f64.powi(-14), 65536.0),
            ScalarType::BFloat => rounded(value, 2f64.powi(-7), 2f64.powi(-126), 2f64.powi(128)),
            _ => value,
        };
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
        // With an exponent always: `1f` is no literal of C.
        let text = format!("{value:e}{suffix}");
        if value.is_sign_negative() {
            format!("({text})")
        } else {
            text
        }
    }
}

/// The closest number of a type with `epsilon` between 1 and the next, of two the even one; `least` is its smallest with all bits, and from
/// `end` on it has none.
fn rounded(value: f64, epsilon: f64, least: f64, end: f64) -> f64 {
    // The power of 2 that is not above the number.
    let power = f64::from_bits(value.abs().to_bits() & 0x7ff0_0000_0000_0000);
    let unit = power.max(least) * epsilon;
    let rounded = (value / unit).round_ties_even() * unit;
    match rounded.abs() < end {
        true => rounded,
        false => f64::INFINITY.copysign(value),
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

#[cfg(test)]
mod tests {
    use super::ScalarType;

    #[test]
    fn literals_of_16_bits_are_rounded_once() {
        let half = |value| ScalarType::Float(16).fraction(value);
        assert_eq!(half(0.1), "9.99755859375e-2f");
        // Half way between 1 and the next is 1; what is more by less than a `float` can state is the next.
        assert_eq!(half(1.0 + 2f64.powi(-11)), "1e0f");
        assert_eq!(
            half(1.0 + 2f64.powi(-11) + 2f64.powi(-40)),
            "1.0009765625e0f"
        );
        assert_eq!(half(65519.0), "6.5504e4f");
        assert_eq!(half(-65520.0), "(-INFINITY)");
        assert_eq!(half(2f64.powi(-25)), "0e0f");
        assert_eq!(half(3.0 * 2f64.powi(-25)), format!("{:e}f", 2f64.powi(-23)));
        assert_eq!(half(f64::NAN), "NAN");
        assert_eq!(ScalarType::BFloat.fraction(1.0 / 3.0), "3.33984375e-1f");
        assert_eq!(ScalarType::Float(32).fraction(0.1), "1e-1f");
    }

    #[test]
    fn vectors_have_a_type_for_each_lane() {
        let of = ScalarType::of_lanes;
        assert_eq!(of("float32x4"), Some((ScalarType::Float(32), 4)));
        assert_eq!(of("bfloat16x2"), Some((ScalarType::BFloat, 2)));
        assert_eq!(of("bool"), Some((ScalarType::Bool, 1)));
        for unknown in [
            "x4",
            "float32x0",
            "float32x1",
            "float32xvscalex4",
            "float32x70000",
            "e4m3x2",
        ] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }
}
