//! Targets of 0.2 to 0.6: a name from a fixed list, and words that are not checked.

use super::Target;
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::target::TGT_10;
use serde_json::Value;
use std::collections::BTreeMap;

/// A kind of 0.2 to 0.6.
struct EarlyKind {
    name: &'static str,
    /// The first minor release with the name.
    since: u8,
    device_type: i64,
    keys: &'static [&'static str],
    /// The maximum number of threads; 1 if the device is unknown.
    threads: u16,
    warp: u8,
}

/// Creates a kind of 0.2 to 0.6 without its own limits.
const fn early(
    name: &'static str,
    since: u8,
    device_type: i64,
    keys: &'static [&'static str],
) -> EarlyKind {
    EarlyKind {
        name,
        since,
        device_type,
        keys,
        threads: 1,
        warp: 1,
    }
}

/// The kinds (TGT-13), as of 0.6.
const KINDS: [EarlyKind; 15] = [
    early("llvm", 2, 1, &["cpu"]),
    EarlyKind {
        threads: 1024,
        warp: 32,
        ..early("cuda", 2, 2, &["cuda", "gpu"])
    },
    EarlyKind {
        threads: 1024,
        warp: 32,
        ..early("nvptx", 2, 2, &["cuda", "gpu"])
    },
    EarlyKind {
        threads: 256,
        ..early("rocm", 2, 10, &["rocm", "gpu"])
    },
    EarlyKind {
        threads: 256,
        ..early("opencl", 2, 4, &["opencl", "gpu"])
    },
    EarlyKind {
        threads: 256,
        ..early("metal", 2, 8, &["metal", "gpu"])
    },
    early("opengl", 2, 11, &["opengl"]),
    early("stackvm", 2, 1, &[]),
    early("ext_dev", 2, 12, &[]),
    EarlyKind {
        threads: 256,
        ..early("vulkan", 3, 7, &["vulkan", "gpu"])
    },
    early("sdaccel", 4, 4, &["sdaccel", "hls"]),
    early("aocl", 4, 5, &["aocl", "hls"]),
    early("aocl_sw_emu", 5, 5, &["aocl", "hls"]),
    early("c", 5, 1, &["cpu"]),
    early("hybrid", 5, 1, &[]),
];

/// The words that Python of 0.2 adds for a Raspberry Pi (TGT-14).
const RASP: [&str; 4] = [
    "-device=rasp",
    "-mtriple=armv7l-none-linux-gnueabihf",
    "-mcpu=cortex-a53",
    "-mattr=+neon",
];

/// Reads the target that a command line of 0.2 to 0.6 names.
pub(super) fn read(release: Release, text: &str) -> Result<Target, Violation> {
    // TGT-11: any white space separates words. Quotes are ordinary characters.
    let mut words = text.split_ascii_whitespace();
    let name = words.next().unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let minor = release.minor();
    let (name, words) = match device_of(minor, &words) {
        Some("rasp") if minor == 2 => ("llvm", append_new_words(&RASP, &words)),
        Some("mali") if minor == 2 => ("opencl", append_new_words(&["-device=mali"], &words)),
        _ => (name, words),
    };
    let kind = KINDS
        .iter()
        .find(|kind| kind.name == name && minor >= kind.since)
        // TGT-10: from 0.3 on upstream logs the name, and compiles for `stackvm`.
        .ok_or_else(|| TGT_10.rejected(Kind::UnknownKind, format!("Unknown target name {name}")))?;
    Ok(Target {
        release,
        kind: name.into(),
        device_type: kind.device_type,
        tag: String::new(),
        keys: keys(minor, kind, &words),
        host: None,
        attrs: attrs(minor, kind, &words),
    })
}

/// Appends the user's words to others, without those that are already there (TGT-14).
fn append_new_words<'t>(first: &[&'t str], words: &[&'t str]) -> Vec<&'t str> {
    let own = words.iter().filter(|word| !first.contains(word));
    first.iter().chain(own).copied().collect()
}

/// Returns the keys. The device comes before the keys of the name, because the more specific key is looked up first (TGT-12).
fn keys(minor: u8, kind: &EarlyKind, words: &[&str]) -> Vec<String> {
    let mut keys = Vec::new();
    // TGT-12: 0.6 has an option for keys. It adds each device at the position of the word, and the last device once more. In 0.6,
    // `-device=mali` is therefore a key twice.
    if minor == 6 {
        for word in words {
            if let Some(list) = word.strip_prefix("-keys=") {
                keys.extend(items(list));
            } else if let Some(device) = word.strip_prefix("-device=") {
                keys.push(device);
            }
        }
    }
    keys.extend(device_of(minor, words).filter(|device| !device.is_empty()));
    let own: &[&str] = match (minor, kind.name) {
        // TGT-13: the schedules for OpenCL were those of ROCm.
        (2 | 3, "opencl") => &["rocm", "gpu"],
        (2, "metal") => &["gpu"],
        _ => kind.keys,
    };
    keys.extend(own);
    keys.into_iter().map(Into::into).collect()
}

/// Returns the attributes (TGT-13).
fn attrs(minor: u8, kind: &EarlyKind, words: &[&str]) -> BTreeMap<String, Value> {
    let device = device_of(minor, words).unwrap_or_default();
    let threads = match kind.threads {
        // TGT-13: only `cuda` and `nvptx` have 1024; before 0.6 they have 512.
        1024 if minor < 6 => 512,
        threads => threads,
    };
    // TGT-13: the device was renamed in 0.4.
    let is_intel = match minor {
        2 => false,
        3 => device == "intel_gpu",
        _ => device == "intel_graphics",
    };
    let warp = if is_intel && matches!(kind.name, "rocm" | "opencl") {
        16
    } else {
        kind.warp
    };
    let mut attrs = BTreeMap::new();
    attrs.insert("thread_warp_size".into(), warp.into());
    // Python of 0.2 has no such attribute if the device is unknown.
    if threads > 1 || minor > 2 {
        attrs.insert("max_num_threads".into(), threads.into());
    }
    if !device.is_empty() {
        attrs.insert("device".into(), device.into());
    }
    let libs: Vec<&str> = words
        .iter()
        .filter_map(|word| word.strip_prefix("-libs="))
        .flat_map(|list| match minor {
            // TGT-11: 0.2 keeps the empty item after a trailing comma.
            2 => value_of_0_2(list).split(',').collect(),
            _ => items(list),
        })
        .collect();
    if !libs.is_empty() {
        attrs.insert("libs".into(), libs.into());
    }
    // TGT-14: the unchanged words, from which the text of the target is made.
    if !words.is_empty() {
        attrs.insert("options".into(), words.into());
    }
    attrs
}

/// Returns the last device (TGT-12).
fn device_of<'t>(minor: u8, words: &[&'t str]) -> Option<&'t str> {
    let mut devices = words
        .iter()
        .filter_map(|word| word.strip_prefix("-device="));
    devices.next_back().map(|device| match minor {
        2 => value_of_0_2(device),
        _ => device,
    })
}

/// Returns the part up to the next equals sign, because Python of 0.2 splits a word at every equals sign and uses the second part.
fn value_of_0_2(text: &str) -> &str {
    text.split('=').next().unwrap_or_default()
}

/// Splits a list at its commas. An empty text after the last comma is not an item.
fn items(list: &str) -> Vec<&str> {
    let mut items: Vec<&str> = list.split(',').collect();
    if items.last().is_some_and(|last| last.is_empty()) {
        items.pop();
    }
    items
}
