//! The productions of module kinds, from the table of kinds.

use std::fmt::Write as _;
use tvmspec::payload::{FieldShape, FormSlot, kinds};
use tvmspec::release::{Release, Releases};

/// Creates one production for each form of each kind, in the order of the table and of PAY-09.
pub(crate) fn productions() -> String {
    let mut text = String::new();
    for info in kinds() {
        for form in info.forms {
            let mut words = vec![format!("{}@{} ::=", info.kind, range(form.releases))];
            words.extend(form.slots.iter().map(field));
            let mut width = 0;
            for word in words {
                let length = word.chars().count();
                match width {
                    0 => text.push_str(&word),
                    _ if width + 1 + length > 100 => {
                        write!(text, "\n    {word}").expect("strings grow");
                        width = 3;
                    }
                    _ => write!(text, " {word}").expect("strings grow"),
                }
                width += 1 + length;
            }
            text.push('\n');
        }
    }
    text
}

fn range(releases: Releases) -> String {
    match releases.until {
        Release::LAST => format!("{}..", releases.since),
        until => format!("{}..{until}", releases.since),
    }
}

fn field(slot: &FormSlot) -> String {
    let name = slot.name;
    let kind = match slot.shape {
        FieldShape::Text => "string",
        FieldShape::Version => "digits",
        FieldShape::Base64 => "base64",
        FieldShape::Format(_) => "word",
        FieldShape::Code | FieldShape::Binary => "bytes",
        FieldShape::Int => "i32",
        FieldShape::Names => "vector<string>",
        FieldShape::Functions => "map<key:string, function>",
        FieldShape::SilentFunctions => "map<key:string, unnamed_function>",
        FieldShape::Kernels => "map<name:string, code:bytes>",
        FieldShape::Shaders { framed: false } => "map<name:string, shader>",
        FieldShape::Shaders { framed: true } => "map<name:string, shader:window<shader>>",
        FieldShape::Networks { sizes: false } => "vector<network>",
        FieldShape::Networks { sizes: true } => "vector<sized_network>",
        FieldShape::StackVms => "map<name:string, stack_function>",
        FieldShape::Imports => "vector<kind:string payload<kind>>",
        // These productions name their content themselves.
        FieldShape::Variables => return "named_tensors".to_owned(),
        FieldShape::Symbols => return "symbol_lists".to_owned(),
        FieldShape::Params => return "parameters".to_owned(),
        FieldShape::Relay => return "code:window<relay_code>".to_owned(),
        FieldShape::Relax => return "relax_executable".to_owned(),
    };
    format!("{name}:{kind}")
}
