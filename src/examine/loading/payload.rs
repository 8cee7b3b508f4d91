//! What the loader of a kind makes of a payload, release by release.
//!
//! A payload is walked as the loaders walk it: field by field, with the checks that they make and without those that they do
//! not make. How far a loader looks was read from the loaders of every release; where it was not, the answer is
//! [`Stop::Unknown`].

use super::stream::{LoaderStream, Manner, text};
use super::tensor::tensor;
use super::{Stop, json_graph, relax, relay};
use crate::blob::{IMPORT_TREE, LIBRARY};
use crate::payload::{self, FieldShape, FormSlot, KindInfo, PayloadForm, SECOND_FORM};
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
    // MOD-11: a loader's name is made of the kind, and none is registered for these two.
    if matches!(kind, LIBRARY | IMPORT_TREE) {
        return Err(Stop::Rejects(format!("it has no loader for `{kind}`")));
    }
    // BLOB-04: no function is registered under such a name.
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
    // PAY-34: a kind that got another name is read as the new one is.
    let renamed = || form(payload::kind_info(info.renamed?.0)?);
    let Some(form) = form(info).or_else(renamed) else {
        return Err(Stop::Unknown(format!(
            "it is not known what `{loader}` of this release reads"
        )));
    };
    // One field of this kind is enough: where it ends is known by its grammar only, and what follows it with it.
    if form.slots.iter().any(|slot| is_foreign(slot.shape)) {
        return by_grammar(release, info, stream);
    }
    let mut seen = FieldsRead::default();
    for slot in form.slots {
        let field = field(release, slot, stream, &mut seen);
        field.map_err(|stop| unlooked(info, slot, stream.manner(), stop))?;
    }
    seen.judge(release, kind)
}

/// Whether this is the form of OpenCL with SPIR-V, which its own loader cannot read (PAY-13).
fn is_unread(info: &KindInfo, form: &PayloadForm) -> bool {
    info.kind == "opencl" && form.name == "0.13"
}

/// Whether a field of this shape is read by code of its own, and not walked here.
fn is_foreign(shape: FieldShape) -> bool {
    matches!(
        shape,
        FieldShape::Networks { .. } | FieldShape::StackVms | FieldShape::Imports
    )
}

/// From 0.24 on a loader may not look whether a field was there: those of device code look at the functions only.
///
/// What that loader makes of the field is whatever was in it before, so that the outcome is not known.
fn unlooked(info: &KindInfo, slot: &FormSlot, manner: Manner, stop: Stop) -> Stop {
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

/// A kind of which only the grammar is known, not what its loader lets pass.
///
/// Reads it by the rules, and leaves the stream behind it.
fn by_grammar(
    release: Release,
    info: &KindInfo,
    stream: &mut LoaderStream<'_>,
) -> Result<(), Stop> {
    let mut cursor = Cursor::new(stream.rest());
    let layout = Layout::of(release);
    match payload::read(info.kind, layout, &mut cursor, &mut Findings::default()) {
        Ok(_) => {
            // The cursor ran over the bytes that are left of the stream, which has to follow it.
            let read = stream.rest().len().saturating_sub(cursor.remaining());
            stream.skip(read);
            Ok(())
        }
        Err(broken) => Err(Stop::Unknown(format!("it breaks {broken}"))),
    }
}

/// What the checks that span several fields need of them.
///
/// All of it is text and names as the loader has them, not yet held to UTF-8: loaders compare bytes.
#[derive(Default)]
struct FieldsRead<'a> {
    /// The format of device code.
    format: &'a [u8],
    /// The keys of the function map, doubles included.
    functions: Vec<&'a [u8]>,
    /// The source or the binary of device code.
    code: &'a [u8],
    /// The names of the stored tensors (PAY-34).
    variables: HashSet<&'a [u8]>,
    /// Functions, and the variables that each takes, in the order of the bytes (PAY-34).
    listed: Vec<(&'a [u8], Vec<&'a [u8]>)>,
}

/// Reads one field as the loader of `release` reads it, and keeps in `seen` what later checks need.
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
            // A graph executor's graph is read when an executor is made; that of a vendor's runtime when it is loaded.
            if slot.rule == payload::PAY_45 {
                json_graph::walk(release, graph)?;
            }
        }
        // PAY-17, PAY-98: what these texts have to be is looked at by no loader.
        FieldShape::Text | FieldShape::Version | FieldShape::Base64 | FieldShape::Binary => {
            stream.string(name)?;
        }
        FieldShape::Code => seen.code = stream.string(name)?,
        // A loader keeps the number as it is, whatever it means.
        FieldShape::Int => drop(stream.i32(name)?),
        FieldShape::Names => drop(stream.strings(name)?),
        FieldShape::Functions | FieldShape::SilentFunctions => {
            seen.functions = functions(release, stream)?;
        }
        // A name and code, with a length of 8 bytes each.
        FieldShape::Kernels => {
            for _ in 0..stream.count(16, name)? {
                stream.string(name)?;
                stream.string(name)?;
            }
        }
        // PAY-14: a name's length, and flags with a count or a framed length, take at least 16 bytes.
        FieldShape::Shaders { framed } => {
            for _ in 0..stream.count(16, name)? {
                stream.string(name)?;
                // PAY-15: from 0.24 on a shader has its length in front.
                if framed {
                    let mut shader = LoaderStream::new(stream.string(name)?, Manner::Reports);
                    words(&mut shader, name)?;
                } else {
                    words(stream, name)?;
                }
            }
        }
        // PAY-35, PAY-36: counts and doubles are what this loader checks in every release.
        FieldShape::Variables => {
            let names = stream.strings(name)?;
            same(stream.u64("number of tensors")?, names.len())?;
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
            same(stream.u64("number of symbols")?, symbols.len())?;
            for symbol in symbols {
                let variables = stream.strings("variables of a symbol")?;
                seen.listed.push((symbol, variables));
            }
        }
        // PAY-42: the count comes before the names here, and behind them in PAY-34.
        FieldShape::Params => {
            let count = stream.u64("number of parameters")?;
            let names = stream.strings("names of parameters")?;
            same(count, names.len())?;
            for _ in names {
                tensor(release, stream)?;
            }
        }
        FieldShape::Relax => relax::walk(release, stream)?,
        // PAY-60: a string, which is read through a stream of its own.
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

/// PAY-35, PAY-42: as many things as names, which every release checks.
fn same(count: u64, names: usize) -> Result<(), Stop> {
    if count == names as u64 {
        return Ok(());
    }
    Err(Stop::Rejects(format!(
        "{names} names and {count} things that they name"
    )))
}

/// Flags and words of a shader, a u32 and a vector of u32 (PAY-14). Loaders keep both unread.
fn words(stream: &mut LoaderStream<'_>, name: &str) -> Result<(), Stop> {
    stream.i32(name)?;
    stream.elements(4, name).map(drop)
}

/// Reads a function map and returns the keys of its functions (PAY-02).
fn functions<'a>(release: Release, stream: &mut LoaderStream<'a>) -> Result<Vec<&'a [u8]>, Stop> {
    let mut keys = Vec::new();
    // Key, name, types and tags have at least a length or count of 8 bytes each.
    for _ in 0..stream.count(32, "functions")? {
        // PAY-04: both of one name are kept; which one counts differs between releases.
        let key = stream.string("name of a function")?;
        keys.push(key);
        // PAY-54: no release looks for the marker, so that all that follows is misread.
        let is_second = stream.string("name of a function")? == SECOND_FORM.as_bytes();
        match (info(release, stream), is_second) {
            (Ok(()), false) => {}
            (Err(stop), false) => return Err(stop),
            (read, true) => return Err(later(key, read)),
        }
    }
    Ok(keys)
}

/// Reads what stands behind the name of a function (PAY-02).
fn info(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    stream.elements(4, "argument types")?;
    stream.strings("launch tags")?;
    // PAY-03: nothing in the bytes announces the field, so that the loader of another era misreads all that follows.
    if Layout::of(release) >= Layout::V0_21 {
        stream.elements(4, "argument tags")?;
    }
    Ok(())
}

/// How the loaders of 0.22 to 0.27 end at information of the second form (PAY-54), `read` is what they made of it.
fn later(key: &[u8], read: Result<(), Stop>) -> Stop {
    let about = format!(
        "a TVM after 0.27 wrote function `{}`, in a form that it does not know",
        text(key)
    );
    match read {
        Ok(()) => Stop::Unknown(about),
        Err(stop) => stop.with(|why| format!("{about}: {why}")),
    }
}

impl FieldsRead<'_> {
    /// The checks that span several fields.
    fn judge(&self, release: Release, kind: &str) -> Result<(), Stop> {
        let since = release.minor();
        match kind {
            "opencl" if since >= 8 => self.split(since),
            "metal" if (8..=12).contains(&since) => self.split(since),
            "const_loader" | "metadata" if since >= 10 => self.all_stored(),
            _ => Ok(()),
        }
    }

    /// 0.8 on: source is cut into kernels while it is loaded, and there must be one for each function (PAY-22).
    fn split(&self, since: u8) -> Result<(), Stop> {
        const DELIMITER: &[u8] = b"// Function: ";
        // PAY-12: no reader checks the format, and what is cut into kernels depends on it.
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
            // PAY-22: without the end of that line loaders loop for ever.
            let Some(end) = behind.iter().position(|byte| *byte == b'\n') else {
                return Err(Stop::Rejects(
                    "it never comes back: the last line that names a kernel is not ended".into(),
                ));
            };
            // PAY-22: of two kernels with one name one is kept: it is the distinct names that are compared.
            kernels.insert(behind.get(..end).unwrap_or_default());
            rest = behind.get(end..).unwrap_or_default();
        }
        let functions: HashSet<_> = self.functions.iter().collect();
        // PAY-22: readers compare the numbers only, not the names.
        if kernels.is_empty() || kernels.len() != functions.len() {
            return Err(Stop::Rejects(format!(
                "the source has {} kernels for {} functions",
                kernels.len(),
                functions.len()
            )));
        }
        Ok(())
    }

    /// 0.10 on: what a function lists is stored (PAY-38). Of a function that is listed twice the last list counts.
    fn all_stored(&self) -> Result<(), Stop> {
        let mut judged = HashSet::new();
        // PAY-37: readers fill a map, so that the last list of a function is the one that is compared.
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
