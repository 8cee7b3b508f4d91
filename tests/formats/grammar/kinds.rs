//! The productions of module kinds, from the table of kinds.

use std::fmt::Write as _;
use tvmspec::payload::{Shape, Slot, kinds};
use tvmspec::release::{Release, Releases};

/// One production for each form of each kind, in the order of the table and of PAY-09.
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

fn field(slot: &Slot) -> String {
    let name = slot.name;
    let kind = match slot.shape {
        Shape::Text => "string",
        Shape::Version => "digits",
        Shape::Base64 => "base64",
        Shape::Format(_) => "word",
        Shape::Code | Shape::Binary => "bytes",
        Shape::Int => "i32",
        Shape::Names => "vector<string>",
        Shape::Functions => "map<key:string, function>",
        Shape::SilentFunctions => "map<key:string, unnamed_function>",
        Shape::Kernels => "map<name:string, code:bytes>",
        Shape::Shaders { framed: false } => "map<name:string, shader>",
        Shape::Shaders { framed: true } => "map<name:string, shader:window<shader>>",
        Shape::Networks { sizes: false } => "vector<network>",
        Shape::Networks { sizes: true } => "vector<sized_network>",
        Shape::StackVms => "map<name:string, stack_function>",
        Shape::Imports => "vector<kind:string payload<kind>>",
        // These have names of their own for what they hold.
        Shape::Variables => return "named_tensors".to_owned(),
        Shape::Symbols => return "symbol_lists".to_owned(),
        Shape::Params => return "parameters".to_owned(),
        Shape::Relay => return "code:window<relay_code>".to_owned(),
        Shape::Relax => return "relax_executable".to_owned(),
    };
    format!("{name}:{kind}")
}
