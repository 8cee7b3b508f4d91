//! The verdict of the loader of each kind on a payload, release by release.
//!
//! A payload is walked as the loaders read it: field by field, and only with the checks that they make. The checks were read from the
//! loaders of every release. For loaders that were not examined, the answer is [`Stop::Unknown`].

use super::stream::{LoaderStream, Manner, text};
use super::tensor::tensor;
use super::{Stop, json_graph, relax, relay};
use crate::blob::{IMPORT_TREE, LIBRARY};
use crate::payload::{self, FieldShape, FormSlot, KindInfo, PayloadForm, marked_form};
use crate::release::{Layout, Release};
use crate::rule::Findings;
use crate::wire::Cursor;
use std::collections::HashSet;

/// Walks the payload of a module of `kind` as the loader of `release` reads it.
pub(super) fn walk(
    release: Release,
    kind: &str,
    stream: &mut LoaderStream<'_>,
) -> Result<(), Stop> {
    // MOD-11: the name of a loader contains the kind, and no loader is registered for these two kinds.
    if matches!(kind, LIBRARY | IMPORT_TREE) {
        return Err(Stop::Rejects(format!("it has no loader for `{kind}`")));
    }
    // BLOB-04: no function can be registered under such a name.
    if kind.is_empty() || kind.contains('\0') {
        return Err(Stop::Rejects(format!(
            "it has no loader for `{}`",
            text(kind.as_bytes())
        )));
    }
    // MOD-11: any global function of the right name is a loader.
    let Some(info) = payload::kind_info(kind) else {
        return Err(Stop::Unknown(format!(
            "no release has a loader for `{kind}`: it loads where a loader for it is registered"
        )));
    };
    let Some(loader) = info.loader(release) else {
        return Err(Stop::Rejects(format!("it has no loader for `{kind}`")));
    };
    let form = |info: &'static KindInfo| {
        let mut forms = info.forms.iter();
        forms.find(|form| form.releases.contains(release) && !is_unread(info, form))
    };
    // PAY-34: a renamed kind is read in the form of its new name.
    let renamed = || form(payload::kind_info(info.renamed?.0)?);
    let Some(form) = form(info).or_else(renamed) else {
        return Err(Stop::Unknown(format!(
            "it is not known what `{loader}` of this release reads"
        )));
    };
    // One such field is enough, because only its grammar shows where it ends and where the next field begins.
    if form.slots.iter().any(|slot| is_foreign(slot.shape)) {
        return by_grammar(release, info, stream);
    }
    let mut seen = FieldsRead::default();
    for slot in form.slots {
        let field = field(release, slot, stream, &mut seen);
        field.map_err(|stop| soften_rejection(info, slot, stream.manner(), stop))?;
    }
    seen.judge(release, kind)
}

/// Returns whether this is the form of OpenCL with SPIR-V, which its own loader cannot read (PAY-13).
fn is_unread(info: &KindInfo, form: &PayloadForm) -> bool {
    info.kind == "opencl" && form.name == "0.13"
}

/// Returns whether fields of this shape are read by specific code of the loader, which is not walked here.
fn is_foreign(shape: FieldShape) -> bool {
    matches!(
        shape,
        FieldShape::Networks { .. } | FieldShape::StackVms | FieldShape::Imports
    )
}

/// Turns a rejection into an unknown outcome if the loader may not notice the missing field. From 0.24 on, loaders of device code only
/// check that the functions were read.
///
/// If a field is missing, such a loader uses the previous value of the field's memory, so the outcome is unknown.
fn soften_rejection(info: &KindInfo, slot: &FormSlot, manner: Manner, stop: Stop) -> Stop {
    let looks = match info.kind {
        "c" | "static_library" | "const_loader" | "relax.Executable" | "relax.VMExecutable" => true,
        _ if slot.name == "functions" || slot.name == "graph_json" => true,
        _ => slot.rule == payload::PAY_45,
    };
    match stop {
        Stop::Rejects(why) if !looks && manner != Manner::Raises => Stop::Unknown(format!(
            "`{}` cannot be read ({why}), and its loader does not look whether it was",
            slot.name
        )),
        stop => stop,
    }
}

/// Reads a payload by its grammar, for a kind whose loader was not examined.
///
/// Moves the stream past the payload.
fn by_grammar(
    release: Release,
    info: &KindInfo,
    stream: &mut LoaderStream<'_>,
) -> Result<(), Stop> {
    let mut cursor = Cursor::new(stream.remaining());
    let layout = Layout::of(release);
    match payload::read(info.kind, layout, &mut cursor, &mut Findings::default()) {
        Ok(_) => {
            // The cursor read a copy of the stream's remaining bytes. The stream must advance by the same number.
            let read = stream.remaining().len().saturating_sub(cursor.remaining());
            stream.skip(read);
            Ok(())
        }
        Err(broken) => Err(Stop::Unknown(format!("it breaks a rule: {broken}"))),
    }
}

/// The field values that later checks across several fields need.
///
/// Texts and names are bytes that are not checked for UTF-8, because loaders compare bytes.
#[derive(Default)]
struct FieldsRead<'a> {
    /// The format of device code.
    format: &'a [u8],
    /// The keys of the function map, including duplicates.
    functions: Vec<&'a [u8]>,
    /// The source or the binary of device code.
    code: &'a [u8],
    /// The names of the stored tensors (PAY-34).
    variables: HashSet<&'a [u8]>,
    /// Functions, each with its variables, in the order of the bytes (PAY-34).
    listed: Vec<(&'a [u8], Vec<&'a [u8]>)>,
}

/// Reads one field as the loader of `release` does, and stores in `seen` the values for later checks.
fn field<'a>(
    release: Release,
    slot: &FormSlot,
    stream: &mut LoaderStream<'a>,
    seen: &mut FieldsRead<'a>,
) -> Result<(), Stop> {
    let name = slot.name;
    match slot.shape {
        // PAY-11, PAY-12: no loader checks the format.
        FieldShape::Format(_) => seen.format = stream.string(name)?,
        FieldShape::Text if name == "graph_json" => {
            let graph = stream.string(name)?;
            // The graph of a graph executor is read when an executor is created. That of a vendor's runtime is read here.
            if slot.rule == payload::PAY_45 {
                json_graph::walk(release, graph)?;
            }
        }
        // PAY-17, PAY-98: no loader checks the content of these texts.
        FieldShape::Text | FieldShape::Version | FieldShape::Base64 | FieldShape::Binary => {
            stream.string(name)?;
        }
        FieldShape::Code => seen.code = stream.string(name)?,
        // A loader stores the number without a check.
        FieldShape::Int => drop(stream.i32(name)?),
        FieldShape::Names => drop(stream.strings(name)?),
        FieldShape::Functions | FieldShape::SilentFunctions => {
            seen.functions = functions(release, stream)?;
        }
        // A name and the code, each with a length of 8 bytes.
        FieldShape::Kernels => {
            for _ in 0..stream.count(16, name)? {
                stream.string(name)?;
                stream.string(name)?;
            }
        }
        // PAY-14: a name with its length, and flags with a count or a framed length, take at least 16 bytes.
        FieldShape::Shaders { framed } => {
            for _ in 0..stream.count(16, name)? {
                stream.string(name)?;
                // PAY-15: from 0.24 on, a shader starts with its length.
                if framed {
                    let mut shader = LoaderStream::new(stream.string(name)?, Manner::Reports);
                    read_shader_words(&mut shader, name)?;
                } else {
                    read_shader_words(stream, name)?;
                }
            }
        }
        // PAY-35, PAY-36: this loader checks counts and duplicates in every release.
        FieldShape::Variables => {
            let names = stream.strings(name)?;
            check_counts(stream.u64("number of tensors")?, names.len())?;
            for _ in &names {
                tensor(release, stream)?;
            }
            for variable in names {
                if !seen.variables.insert(variable) {
                    let variable = text(variable);
                    return Err(Stop::Rejects(format!(
                        "variable `{variable}` is there twice"
                    )));
                }
            }
        }
        FieldShape::Symbols => {
            let symbols = stream.strings(name)?;
            check_counts(stream.u64("number of symbols")?, symbols.len())?;
            for symbol in symbols {
                let variables = stream.strings("variables of a symbol")?;
                seen.listed.push((symbol, variables));
            }
        }
        // PAY-42: the count comes before the names here, and after them in PAY-34.
        FieldShape::Params => {
            let count = stream.u64("number of parameters")?;
            let names = stream.strings("names of parameters")?;
            check_counts(count, names.len())?;
            for _ in names {
                tensor(release, stream)?;
            }
        }
        FieldShape::Relax => relax::walk(release, stream)?,
        // PAY-60: a string, which is read through a second stream.
        FieldShape::Relay => {
            let code = stream.string(name)?;
            relay::walk(release, &mut LoaderStream::new(code, Manner::Reports))?;
        }
        FieldShape::Networks { .. } | FieldShape::StackVms | FieldShape::Imports => {
            return Err(Stop::Unknown(format!("`{name}` is not walked here")));
        }
    }
    Ok(())
}

/// Checks that the number of items equals the number of names, as every release does (PAY-35, PAY-42).
fn check_counts(count: u64, names: usize) -> Result<(), Stop> {
    if count == names as u64 {
        return Ok(());
    }
    Err(Stop::Rejects(format!(
        "{names} names and {count} things that they name"
    )))
}

/// Reads the flags and the words of a shader, a u32 and a vector of u32 (PAY-14). Loaders store both without a check.
fn read_shader_words(stream: &mut LoaderStream<'_>, name: &str) -> Result<(), Stop> {
    stream.i32(name)?;
    stream.elements(4, name).map(drop)
}

/// Reads a function map and returns the keys of its functions (PAY-02).
fn functions<'a>(release: Release, stream: &mut LoaderStream<'a>) -> Result<Vec<&'a [u8]>, Stop> {
    let mut keys = Vec::new();
    // Key, name, types and tags each have at least a length or count of 8 bytes.
    for _ in 0..stream.count(32, "functions")? {
        // PAY-04: two functions of one name are both kept. Releases differ in which one they use.
        let key = stream.string("name of a function")?;
        keys.push(key);
        // PAY-54: no release checks for the marker, so that everything after it is misread.
        let name = std::str::from_utf8(stream.string("name of a function")?).ok();
        let is_later = name.and_then(marked_form).is_some();
        match (info(release, stream), is_later) {
            (Ok(()), false) => {}
            (Err(stop), false) => return Err(stop),
            (read, true) => return Err(judge_second_form(key, read)),
        }
    }
    Ok(keys)
}

/// Reads the function information that follows the name of a function (PAY-02).
fn info(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    stream.elements(4, "argument types")?;
    stream.strings("launch tags")?;
    // PAY-03: no byte announces the field. The loader of another era therefore misreads everything after it.
    if Layout::of(release) >= Layout::V0_21 {
        stream.elements(4, "argument tags")?;
    }
    Ok(())
}

/// Returns the outcome of 0.22 to 0.27 for function information of the second form (PAY-54). `read` is the result of reading it as the
/// first form.
fn judge_second_form(key: &[u8], read: Result<(), Stop>) -> Stop {
    let about = format!(
        "a TVM after 0.27 wrote function `{}`, in a form that it does not know",
        text(key)
    );
    match read {
        Ok(()) => Stop::Unknown(about),
        Err(stop) => stop.map_reason(|why| format!("{about}: {why}")),
    }
}

impl FieldsRead<'_> {
    /// Makes the checks that span several fields.
    fn judge(&self, release: Release, kind: &str) -> Result<(), Stop> {
        let since = release.minor();
        match kind {
            "opencl" if since >= 8 => self.split(since),
            "metal" if (8..=12).contains(&since) => self.split(since),
            "const_loader" | "metadata" if since >= 10 => self.all_stored(),
            _ => Ok(()),
        }
    }

    /// Checks that kernels in source match the functions, one each (PAY-22). From 0.8 on, the source is split while it is loaded.
    fn split(&self, since: u8) -> Result<(), Stop> {
        const DELIMITER: &[u8] = b"// Function: ";
        // PAY-12: no reader checks the format, but it decides whether the source is split.
        if self.format != b"cl" && self.format != b"metal" {
            return match since {
                24.. => Ok(()),
                _ => Err(Stop::Unknown(format!(
                    "it cuts source into kernels while it loads, and the format is `{}`",
                    text(self.format)
                ))),
            };
        }
        let mut kernels = HashSet::new();
        let mut rest = self.code;
        while let Some(at) = rest
            .windows(DELIMITER.len())
            .position(|bytes| bytes == DELIMITER)
        {
            let behind = rest.get(at.saturating_add(DELIMITER.len())..);
            let behind = behind.unwrap_or_default();
            // PAY-22: if this line does not end, loaders never return.
            let Some(end) = behind.iter().position(|byte| *byte == b'\n') else {
                return Err(Stop::Rejects(
                    "it never comes back: the last line that names a kernel is not ended".into(),
                ));
            };
            // PAY-22: only one of two kernels with the same name is kept, so loaders count distinct names.
            kernels.insert(behind.get(..end).unwrap_or_default());
            rest = behind.get(end..).unwrap_or_default();
        }
        let functions: HashSet<_> = self.functions.iter().collect();
        // PAY-22: readers compare the counts only, not the names.
        if kernels.is_empty() || kernels.len() != functions.len() {
            return Err(Stop::Rejects(format!(
                "the source has {} kernels for {} functions",
                kernels.len(),
                functions.len()
            )));
        }
        Ok(())
    }

    /// Checks that all variables that a function lists are stored, as 0.10 and later do (PAY-38). If a function has two lists, the last
    /// one counts.
    fn all_stored(&self) -> Result<(), Stop> {
        let mut judged = HashSet::new();
        // PAY-37: readers fill a map, so the last list of a function is the one to check.
        for (symbol, variables) in self.listed.iter().rev() {
            if !judged.insert(symbol) {
                continue;
            }
            if let Some(missing) = variables
                .iter()
                .find(|name| !self.variables.contains(*name))
            {
                return Err(Stop::Rejects(format!(
                    "function `{}` needs variable `{}`, which is not stored",
                    text(symbol),
                    text(missing)
                )));
            }
        }
        Ok(())
    }
}
