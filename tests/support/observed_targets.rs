//! Comparison of targets in a real release, as `golden/target/observe.py` recorded them, with this library.

use serde_json::Value;
use std::collections::BTreeMap;
use tvmspec::release::Release;
use tvmspec::target::{HostMachine, Target, Targets};

/// Attributes of a processor of Arm's A profile that LLVM determines (TGT-56).
const BY_LLVM: [&str; 7] = [
    "feature.is_aarch64",
    "feature.has_asimd",
    "feature.has_sve",
    "feature.has_dotprod",
    "feature.has_matmul_i8",
    "feature.has_fp16_simd",
    "feature.has_sme",
];

/// Vendor additions in the package of 0.16.dev0, and a tag that 0.16 changed later.
pub(crate) const FORKED: [&str; 4] = ["aitrace", "vlen", "rlen", "nvidia-h100"];

/// Parts of inputs that 0.16.0 changed after that package was forked.
#[allow(dead_code, reason = "of the tests that have the package")]
pub(crate) const CHANGED_BY_0_16: [&str; 3] = ["llvm", "sm_90a", "sm_8x"];

/// The number of inputs that were compared, and the differences.
pub(crate) struct Comparison {
    pub(crate) equal: usize,
    pub(crate) rejected: usize,
    pub(crate) different: Vec<String>,
}

/// Reads each observed input by the rules of `release`. `forked` has texts of inputs for which the observed build differs from
/// upstream.
pub(crate) fn compare(observed: &Value, release: Release, forked: &[&str]) -> Comparison {
    let mut machine = HostMachine::default();
    machine.triple = observed["triple"].as_str().unwrap_or_default().into();
    let targets = Targets::for_machine(release, machine);
    let mut found = Comparison {
        equal: 0,
        rejected: 0,
        different: Vec::new(),
    };
    for pair in observed["seen"].as_array().expect("a list") {
        let (input, theirs) = (&pair[0], &pair[1]);
        if forked.iter().any(|part| input.to_string().contains(part)) {
            continue;
        }
        // `from_device` asks a driver if the machine has one. The answer does not depend on the text.
        let machine = theirs["error"].as_str().unwrap_or_default();
        if machine.contains("Requested reading the parameters") {
            continue;
        }
        let ours = match input {
            Value::String(text) => targets.read(text),
            other => targets.read_config(other.as_object().expect("an object")),
        };
        let difference = match (&ours, theirs.get("target"), theirs["error"].as_str()) {
            (Ok(ours), Some(theirs), _) => {
                differs(ours, theirs).or_else(|| text_differs(ours, &pair[1]["text"]))
            }
            (Err(ours), None, Some(theirs)) => {
                found.rejected += 1;
                message_differs(ours.message(), theirs)
            }
            (ours, _, _) => Some(format!("ours {ours:?}")),
        };
        match difference {
            None => found.equal += 1,
            Some(what) => found
                .different
                .push(format!("{input}\n    theirs {theirs}\n    {what}")),
        }
    }
    found
}

fn differs(ours: &Target, theirs: &Value) -> Option<String> {
    let mut theirs = theirs.clone();
    without_llvm(&mut theirs);
    let ours = Value::Object(ours.export());
    let (left, right) = (sorted(&ours), sorted(&theirs));
    (left != right).then(|| format!("ours   {ours}"))
}

fn sorted(value: &Value) -> BTreeMap<&String, &Value> {
    value.as_object().into_iter().flatten().collect()
}

fn without_llvm(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !BY_LLVM.contains(&name.as_str()));
            members.values_mut().for_each(without_llvm);
        }
        Value::Array(items) => items.iter_mut().for_each(without_llvm),
        _ => {}
    }
}

fn text_differs(ours: &Target, theirs: &Value) -> Option<String> {
    let text = ours.render();
    match (text, theirs.as_str()) {
        (Ok(text), Some(theirs)) if ours.release.minor() < 24 => {
            (text != theirs).then(|| format!("ours text {text}"))
        }
        (Ok(text), Some(theirs)) => {
            let (ours, mut theirs): (Value, Value) = (
                serde_json::from_str(&text).ok()?,
                serde_json::from_str(theirs).ok()?,
            );
            without_llvm(&mut theirs);
            (sorted(&ours) != sorted(&theirs)).then(|| format!("ours text {text}"))
        }
        (Err(_), None) => None,
        // TGT-64: upstream has no text for targets in an option.
        (Ok(text), None) if ours.release.minor() >= 24 && text.contains("\"devices\":[{") => None,
        (text, _) => Some(format!("ours text {text:?}")),
    }
}

/// Compares texts, except for differences from hash tables and from the printer of values.
fn message_differs(ours: &str, theirs: &str) -> Option<String> {
    // Up to 0.23, members are checked in the order of a hash table. If two are wrong, either may be reported.
    let of_member = |text: &str| text.contains("Error when parsing target[\"");
    if of_member(ours) && of_member(theirs) && member_of(ours) != member_of(theirs) {
        return None;
    }
    // TGT-04: a parser that runs before types are checked has its own text for them.
    if theirs.contains("Downcast from") && ours.contains("Expect") {
        return None;
    }
    // TGT-28: up to 0.9, C++'s own message for a text that ends before it begins.
    if theirs.contains("substr: __pos") && ours.contains("into type \"String\"") {
        return None;
    }
    let mut core = ours;
    for end in [
        "Candidates are:",
        " for object:",
        "The object is:",
        "with type: ",
        "Failed to parse target JSON config",
        "but gets: ",
    ] {
        if let Some(at) = core.find(end) {
            core = &core[..at];
        }
    }
    (!theirs.contains(core.trim_end())).then(|| format!("ours   {ours}"))
}

/// Returns `mcpu` for `Error when parsing target["mcpu"]`.
fn member_of(text: &str) -> Option<&str> {
    text.split("target[\"").nth(1)?.split('"').next()
}
