//! Recognition of files that TVM did not write, by their first bytes: formats of other programs and damaged downloads.

use super::newer_release::later_magic;
use serde_json::Value;

/// Describes what `bytes` are and what to do, as the end of a sentence that begins with "it is". Returns `None` for an unknown format.
pub(super) fn other_format(bytes: &[u8]) -> Option<String> {
    let fixed = FORMATS.iter().find(|format| {
        bytes
            .get(format.at..)
            .is_some_and(|rest| rest.starts_with(format.magic))
    });
    if let Some(format) = fixed {
        return Some(format.is.to_owned());
    }
    if let Some(later) = later_magic(bytes) {
        return Some(later);
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return Some(zip(bytes).to_owned());
    }
    if bytes.starts_with(b"version https://git-lfs.github.com/spec/") {
        return Some(git_lfs(bytes));
    }
    if is_safetensors(bytes) {
        return Some("a file of safetensors, which no release reads. Load it in Python, and save its tensors with `tvm.runtime.save_param_dict`".to_owned());
    }
    if is_onnx(bytes) {
        return Some("a model of ONNX, which is compiled before it runs: import it with TVM's frontend for ONNX (`from_onnx`) and export the library".to_owned());
    }
    if is_tensorflow(bytes) {
        return Some("a model of TensorFlow, which is compiled before it runs: import it with TVM's frontend (`relay.frontend.from_tensorflow`, up to 0.19), or convert it to ONNX and import that, and export the library".to_owned());
    }
    if is_core_ml(bytes) {
        return Some("a model of Core ML, which is compiled before it runs: import it with TVM's frontend (`relay.frontend.from_coreml`, up to 0.19), or convert it to ONNX and import that, and export the library".to_owned());
    }
    // The bytes state protocols 2 to 5. Protocol 0 begins with an empty dictionary or list. Protocol 1 has no fixed beginning.
    if matches!(
        bytes,
        [0x80, 2..=5, ..] | [b'(', b'd' | b'l', b'p', b'0' | b'1', b'\n', ..]
    ) {
        return Some("a pickle of Python (weights of PyTorch before 1.6 are one). Load it there, and save its tensors with `tvm.runtime.save_param_dict`".to_owned());
    }
    if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0) {
        return Some("zeros from the first byte to the last: what was to be written there never came. Copy or download it again".to_owned());
    }
    text(bytes)
}

/// A format with fixed bytes at a fixed offset.
struct OtherFormat {
    at: usize,
    magic: &'static [u8],
    /// The name of the format, and what to do.
    is: &'static str,
}

/// Creates a row of [`FORMATS`].
const fn format(at: usize, magic: &'static [u8], is: &'static str) -> OtherFormat {
    OtherFormat { at, magic, is }
}

/// The formats that have a magic number.
const FORMATS: [OtherFormat; 20] = [
    format(
        0,
        &[0x12, 1, 0, 0, 0, 0, 0, 0],
        "a parameter file of MXNet, which no release reads. Import the model with TVM's frontend for MXNet (`relay.frontend.from_mxnet`, up to 0.19), and save its parameters with `save_param_dict`",
    ),
    format(
        0,
        b"\x93NUMPY",
        "one array of numpy. `tvmspec call` takes it as `@FILE.npy`, `tvmspec run` as `--input NAME=FILE.npy`; for parameters save it with `tvm.runtime.save_param_dict`",
    ),
    format(
        0,
        b"\x89HDF\r\n\x1a\n",
        "a file of HDF5, as Keras writes it: import the model with TVM's frontend for Keras and export the library",
    ),
    format(
        4,
        b"TFL3",
        "a model of TensorFlow Lite, which is compiled before it runs: import it with TVM's frontend (`from_tflite`) and export the library",
    ),
    format(
        0,
        b"GGUF",
        "a file of GGUF (llama.cpp), which no release reads. MLC converts the original weights",
    ),
    format(
        0,
        b"ftrt",
        "an engine of TensorRT, without the module around it that TVM loads",
    ),
    format(
        0,
        b"BC\xc0\xde",
        "bitcode of LLVM. `tvmspec explain` reads it under a name that ends in .bc",
    ),
    format(
        0,
        &[3, 2, 0x23, 7],
        "SPIR-V, code of one kernel without the module around it that TVM loads",
    ),
    format(
        0,
        b"MTLB",
        "a library of Metal, without the module around it that TVM loads. Name it .metallib, and put its side file into the same folder",
    ),
    format(
        0,
        b"\0asm",
        "WebAssembly of another version than 1, such as a component",
    ),
    format(
        0,
        &[0x1f, 0x8b],
        "gzip, but its content is not a tar archive, or ends within the first block. Run `gunzip` and look at the result; repeat the download if it was interrupted",
    ),
    format(
        0,
        b"BZh",
        "a file under bzip2, which no release reads. Unpack it, `bunzip2`, and look at the result",
    ),
    format(
        0,
        b"\xfd7zXZ\0",
        "a file under xz, which no release reads. Unpack it, `unxz`, and look at the result",
    ),
    format(
        0,
        b"\x28\xb5\x2f\xfd",
        "a file under zstd, which no release reads. Unpack it, `unzstd`, and look at the result",
    ),
    format(
        0,
        b"7z\xbc\xaf\x27\x1c",
        "an archive of 7-Zip, which no release reads. Unpack it, and look at what is in it",
    ),
    format(
        0,
        b"Rar!",
        "an archive of RAR, which no release reads. Unpack it, and look at what is in it",
    ),
    format(
        0,
        &[0xff, 0xfe],
        "text in UTF-16, as Windows' shell writes what it redirects. TVM reads UTF-8: convert it, `iconv -f UTF-16 -t UTF-8`",
    ),
    format(
        0,
        &[0xfe, 0xff],
        "text in UTF-16. TVM reads UTF-8: convert it, `iconv -f UTF-16 -t UTF-8`",
    ),
    format(
        0,
        &[0xb7, 0x9c, 4, 5, 0x4f, 0x8d],
        "the beginning of a parameter file, and nothing after it. Copy or download it again",
    ),
    format(
        0,
        &[0x3f, 0xa1, 0xb4, 0x96, 0xf0, 0x40],
        "the beginning of a tensor file, and nothing after it. Copy or download it again",
    ),
];

/// Returns the description of a zip archive, from the file names near its start.
fn zip(bytes: &[u8]) -> &'static str {
    let has = |name: &[u8]| mentions(bytes, name);
    if has(b"data.pkl") {
        "weights or a model of PyTorch (`torch.save`, `torch.jit.save`). Load it there; a model is imported by TVM's frontend for PyTorch, weights are saved with `tvm.runtime.save_param_dict`"
    } else if has(b".npy") {
        "arrays of numpy (npz). `tvmspec run --inputs` takes them as inputs; for parameters save them with `tvm.runtime.save_param_dict`"
    } else if has(b"AndroidManifest.xml") {
        "a package of Android. Unpack it; the libraries are in `lib/`"
    } else {
        "a zip archive. Unpack it first; TVM writes tar archives"
    }
}

/// Describes a git-lfs pointer file, with the size of the file that it refers to.
fn git_lfs(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..1024).unwrap_or(bytes));
    let size = text.lines().find_map(|line| line.strip_prefix("size "));
    let size = size.and_then(|size| size.trim().parse::<u64>().ok());
    let size = size.map_or(String::new(), |size| format!(" ({size} bytes)"));
    format!(
        "a pointer of git-lfs, and the file itself{size} is not here. Run `git lfs pull`, or download the file by its link"
    )
}

/// Returns whether the bytes start with a length and a JSON header.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return false;
    };
    // Readers of safetensors reject a longer header.
    let is_length = (2..=100_000_000).contains(&u64::from_le_bytes(*length));
    let head = rest.get(..1 << 12).unwrap_or(rest);
    is_length && head.starts_with(b"{\"")
}

/// Recognizes ONNX by its first fields: the version of the format, then the name or version of the producer, or the graph.
fn is_onnx(bytes: &[u8]) -> bool {
    // Field numbers of Protocol Buffers: 1 is a number, 2 to 6 and 8 are texts, 7 is the graph.
    match bytes {
        [0x08, 1..=30, 0x12 | 0x1a | 0x22 | 0x32, length, rest @ ..] => {
            let text = rest.get(..usize::from(*length));
            text.is_some_and(|text| text.iter().all(|byte| (0x20..0x7f).contains(byte)))
        }
        [0x08, 1..=30, 0x3a | 0x42, ..] => true,
        _ => false,
    }
}

/// Returns whether the first 64 KiB of `bytes` hold `word`.
fn mentions(bytes: &[u8], word: &[u8]) -> bool {
    let head = bytes.get(..1 << 16).unwrap_or(bytes);
    head.windows(word.len()).any(|window| window == word)
}

/// Recognizes a frozen graph by its first node, and a saved model by its version and words that every saved model contains.
fn is_tensorflow(bytes: &[u8]) -> bool {
    // Fields of Protocol Buffers. In a graph, 1 is a node, whose fields 1 and 2 are its name and operator.
    if let [0x0a, length, rest @ ..] = bytes {
        // The length has a second byte for 128 and more.
        let node = if *length < 0x80 {
            rest
        } else {
            rest.get(1..).unwrap_or_default()
        };
        if let [0x0a, name, rest @ ..] = node
            && let Some([0x12, operator, rest @ ..]) = rest.get(usize::from(*name)..)
            && let Some([first, others @ ..]) = rest.get(..usize::from(*operator))
        {
            return first.is_ascii_uppercase() && others.iter().all(u8::is_ascii_alphanumeric);
        }
        return false;
    }
    bytes.starts_with(&[0x08, 1, 0x12])
        && (mentions(bytes, b"Placeholder")
            || mentions(bytes, b"VarHandleOp")
            || mentions(bytes, b"saved_model"))
}

/// Recognizes a model of Core ML by its version, its description and the converter, which signs it.
fn is_core_ml(bytes: &[u8]) -> bool {
    matches!(bytes, [0x08, 1..=12, 0x12, ..]) && mentions(bytes, b"coremltools")
}

/// Describes a text that TVM did not write.
fn text(bytes: &[u8]) -> Option<String> {
    let marked = bytes.strip_prefix(b"\xef\xbb\xbf");
    let text = marked.unwrap_or(bytes).trim_ascii_start();
    if text.first().is_some_and(|first| b"{[".contains(first)) {
        return Some(tuning_log(text).unwrap_or_else(|| json(text)));
    }
    let head = text.get(..1 << 12).unwrap_or(text);
    // The last character may be cut off.
    let is_text = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    if head.is_empty() || !is_text || head.contains(&0) {
        return None;
    }
    let lower = head.to_ascii_lowercase();
    let begins = |word: &[u8]| lower.starts_with(word);
    let has = |word: &[u8]| lower.windows(word.len()).any(|window| window == word);
    // A longer name that begins with the word, such as a module `tvmspec`, does not count.
    let has_whole = |word: &[u8]| {
        lower.windows(word.len().saturating_add(1)).any(|window| {
            window.starts_with(word) && window.last().is_some_and(|next| b" .\n\r".contains(next))
        })
    };
    let is = if begins(b"#[version = \"0.0.") || begins(b"v0.0.") {
        "text of Relay, a program before it is compiled. Parse it (`tvm.relay.parse` of 0.13 to 0.19, `tvm.parser.parse` of 0.7 to 0.12), build it and export the library"
    } else if (has(b".globl") || has(b".global"))
        && (has(b".text") || has(b".section"))
        && !has(b".address_size")
    {
        "assembly. Assemble and link it, `cc -shared -o lib.so FILE.s`, and look at the result"
    } else if begins(b"<?xml") && has(b"<net ") {
        "a model of OpenVINO, for which TVM has no frontend: export the model as ONNX, and import that"
    } else if has(b"layer {") || has(b"layers {") {
        "a model of Caffe as text, which is compiled before it runs: import it with TVM's frontend (`relay.frontend.from_caffe`, 0.7 to 0.19) and export the library"
    } else if begins(b"<!doctype html") || begins(b"<html") {
        "a page of HTML: what was downloaded is a message about the file, and not the file"
    } else if has(b".version ") && has(b".target ") {
        "PTX, code for CUDA without the module around it that TVM loads. Name it .ptx, and put its side file into the same folder"
    } else if has(b"target triple") || begins(b"; moduleid") {
        "text of LLVM. `tvmspec explain` reads it under a name that ends in .ll"
    } else if has_whole(b"import tvm") || has_whole(b"from tvm") {
        "a program of Python"
    } else {
        return None;
    };
    Some(is.to_owned())
}

/// Describes a tuning log, in which each line of `text` is JSON. The first line shows which tuner wrote it.
fn tuning_log(text: &[u8]) -> Option<String> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    let line: Value = serde_json::from_slice(line).ok()?;
    let has = |names: &[&str]| names.iter().all(|name| line.get(name).is_some());
    let (who, apply) = if has(&["input", "config", "result"])
        || line.get("v").is_some_and(Value::is_number) && has(&["i", "r"])
    {
        ("AutoTVM", "`autotvm.apply_history_best(FILE)`, up to 0.19")
    } else if has(&["i", "r", "v"]) {
        (
            "the auto-scheduler",
            "`auto_scheduler.ApplyHistoryBest(FILE)`, up to 0.19",
        )
    } else {
        return None;
    };
    Some(format!(
        "a tuning log of {who}, JSON in each line. It is applied while a model is compiled: {apply}"
    ))
}

/// Describes JSON that TVM did not write: its members, or the place where it ends too early.
fn json(text: &[u8]) -> String {
    const NAMED: usize = 6;
    match serde_json::from_slice::<Value>(text) {
        Ok(Value::Object(members)) => {
            let names: Vec<String> = members
                .keys()
                .take(NAMED)
                .map(|name| {
                    format!(
                        "`{}`",
                        name.chars().take(40).collect::<String>().escape_debug()
                    )
                })
                .collect();
            let more = match members.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "JSON that TVM does not write: its members are {}{more}. Expected `nodes`, `arg_nodes`, `heads` and `attrs` (a graph), or `nodes` and `root` or `root_index` (saved objects)",
                if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                },
            )
        }
        Ok(_) => "JSON that TVM does not write: expected an object, in braces".to_owned(),
        Err(error) if text.starts_with(b"{\"root") || text.starts_with(b"{\n  \"root") => {
            format!("the beginning of saved objects, which ends before the first of them: {error}")
        }
        Err(error) => format!("a beginning of JSON without a member that TVM writes: {error}"),
    }
}
