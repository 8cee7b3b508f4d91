//! Containers with a known result, generated from `spec/blob.md` without code from `src/`.
//!
//! Each is an object file or a C text, with one library binary and some symbols. It lies in no archive or in several, and has at most one
//! error.

mod elf;
mod text;
mod wrap;

use arbitrary::{Result, Unstructured};
use tvmspec::blob::container::Role;
use tvmspec::release::Layout;
use tvmspec::rule::Kind;

/// A generated file and the expected result of reading it.
pub struct Made {
    pub bytes: Vec<u8>,
    pub member: String,
    pub blob: Found,
    /// The name, prefix and role of each symbol, in table order.
    pub symbols: Vec<(String, String, Role<'static>)>,
    pub verdict: Verdict,
}

/// The library binary inside a generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub symbol: String,
    pub prefix: String,
    pub layout: Option<Layout>,
    pub address: Option<u64>,
    pub offset: Option<u64>,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
pub enum Verdict {
    Whole,
    /// The file breaks this SHOULD.
    Odd(&'static str),
    /// The file breaks this MUST or LIMIT.
    Broken(&'static str, Kind),
}

/// A symbol of a generated file, other than that of the library binary.
#[derive(Clone)]
pub struct Other {
    pub name: String,
    pub form: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Code,
    Data,
    Undefined,
}

/// BLOB-50: the symbol of a library binary, the symbol of its context, and the layout.
const ERAS: [(&str, &str, Layout); 3] = [
    ("__tvm_dev_mblob", "__tvm_module_ctx", Layout::V0_7),
    ("__tvm_ffi_library_bin", "__tvm_ffi_library_ctx", Layout::V0_21),
    ("__tvm_ffi__library_bin", "__tvm_ffi__library_ctx", Layout::V0_22),
];

pub fn make(from: &mut Unstructured<'_>) -> Result<Made> {
    let (symbol, context, layout) = *from.choose(&ERAS)?;
    let prefix = *from.choose(&["", "", "modA_", "x"])?;
    let symbol = format!("{prefix}{symbol}");
    let body: Vec<u8> = from.arbitrary()?;
    let mut blob = (body.len() as u64).to_le_bytes().to_vec();
    blob.extend(body);
    let others = others(&format!("{prefix}{context}"), from)?;
    let wraps = from.int_in_range(0..=6_usize)?.saturating_sub(1);
    // A file gets at most one error, either in itself or in an archive around it.
    let (inside, outside) = *from.choose(&[(false, false), (true, false), (true, false), (false, true)])?;
    let (inside, outside) = (inside && wraps < 5, outside && (1..5).contains(&wraps));
    let mut symbols = roles(&others, prefix, context);
    let (mut bytes, start, address, mut verdict) = if from.ratio(1, 4)? {
        let (bytes, verdict) = text::make(&symbol, &blob, &others, inside, from)?;
        symbols.retain(|(_, _, role)| !matches!(role, Role::Slot(_) | Role::Needs(_) | Role::Entry));
        (bytes, None, None, verdict)
    } else {
        let made = elf::make(&symbol, &blob, &others, inside, from)?;
        symbols.insert(0, (symbol.clone(), prefix.to_owned(), Role::Blob(layout)));
        (made.bytes, Some(made.start), Some(made.address), made.verdict)
    };
    let mut offset = start;
    let mut member = String::new();
    for depth in 0..wraps {
        let wrong = outside && depth + 1 == wraps;
        let wrapped = wrap::wrap(&bytes, wrong, from)?;
        bytes = wrapped.bytes;
        offset = offset.map(|offset| offset + wrapped.start);
        member = if member.is_empty() { "m".to_owned() } else { format!("m/{member}") };
        if wrong {
            verdict = wrapped.verdict;
        }
    }
    if wraps == 5 {
        verdict = Verdict::Broken("BLOB-57", Kind::Limit);
    }
    let blob = Found { symbol, prefix: prefix.to_owned(), layout: Some(layout), address, offset, bytes: blob };
    Ok(Made { bytes, member, blob, symbols, verdict })
}

/// Chooses some symbols. Each name occurs once.
fn others(context: &str, from: &mut Unstructured<'_>) -> Result<Vec<Other>> {
    let known = [
        ("__tvm_ffi_add", Shape::Code),
        ("add", Shape::Code),
        ("mul", Shape::Code),
        ("_init", Shape::Code),
        ("__tvm_main__", Shape::Data),
        (context, Shape::Data),
        ("__TVMFuncCall", Shape::Data),
        ("table", Shape::Data),
        ("TVMFFIFunctionCall", Shape::Undefined),
        ("malloc", Shape::Undefined),
    ];
    let mut others = Vec::new();
    for (name, form) in known {
        if from.arbitrary()? {
            others.push(Other { name: name.to_owned(), form });
        }
    }
    Ok(others)
}

/// Returns the role of each of [`others`] by BLOB-51 and BLOB-62 to BLOB-65.
fn roles(others: &[Other], prefix: &str, context: &str) -> Vec<(String, String, Role<'static>)> {
    let from_022 = others.iter().any(|other| other.name == "__tvm_ffi_add");
    let mut roles = Vec::new();
    for other in others {
        let (of, role) = match other.name.as_str() {
            "__tvm_ffi_add" => ("", Role::Function("add".into())),
            plain @ ("add" | "mul") if !from_022 => ("", Role::Function(plain.to_owned().into())),
            "__tvm_main__" => ("", Role::Entry),
            "__TVMFuncCall" => ("", Role::Slot("TVMFuncCall".into())),
            "TVMFFIFunctionCall" => ("", Role::Needs("TVMFFIFunctionCall".into())),
            name if name.ends_with(context) => {
                let layout = ERAS.iter().find(|era| era.1 == context).expect("one of three").2;
                (prefix, Role::Context(layout))
            }
            _ => continue,
        };
        roles.push((other.name.clone(), of.to_owned(), role));
    }
    roles
}
