//! The function map: the information that a launcher needs about every device function.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | key | string: the name under which the function is looked up | PAY-02 |
//! | name | string: empty up to 0.23 (but for webgpu the key from 0.16), the key from 0.24 | PAY-02, PAY-07 |
//! | arg_types | vector of dtypes, 4 bytes each | PAY-02 |
//! | launch_param_tags | vector of strings (`thread_axis_tags` up to 0.7) | PAY-02, PAY-05, PAY-06 |
//! | arg_extra_tags | vector of i32 | PAY-03, PAY-08; layouts 0.21 and 0.22 only |
//!
//! A TVM after 0.27 writes a second form (PAY-54). The string `__tvm_function_info_v2__` comes before the name. After the tags come
//! `cuda_launch_fields`, a vector of strings, and `cuda_kernel_attrs`, a map from string to i64.

use super::device::check_file_name;
use super::name_set::note_repeats;
use super::strings::{names, places, text, write_names};
use super::{PAY_02, PAY_03, PAY_04, PAY_05, PAY_06, PAY_07, PAY_08, PAY_09, PAY_54, PAY_58, Text};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::Dtype;
use crate::wire::{Cursor, Writer};

/// One entry of a function map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFunction<'a> {
    /// The name under which the module finds the function.
    pub key: Text<'a>,
    /// The information for a launch.
    pub info: FunctionInfo<'a>,
}

/// The information for the launch of a device function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionInfo<'a> {
    /// The name again: empty in files of 0.2 to 0.23 (except those of webgpu from 0.16 on), equal to the key from 0.24 on.
    pub name: Text<'a>,
    /// Argument types, without the launch parameters. A pointer is `handle`.
    pub arg_types: Vec<Dtype>,
    /// The meaning of each trailing argument: `blockIdx.x`, `threadIdx.y`, `tir.use_dyn_shared_memory`, ...
    pub launch_param_tags: Vec<Text<'a>>,
    /// For each argument 0, or 1 for a tensor map. Empty before 0.21, and in payloads of webgpu.
    pub arg_extra_tags: Vec<i32>,
    /// The fields of the second form, which a TVM after 0.27 writes; `None` in the first form.
    pub second: Option<SecondForm<'a>>,
}

/// The fields that the second form of function information adds (PAY-54).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecondForm<'a> {
    /// The meaning of further arguments of a CUDA launch.
    pub cuda_launch_fields: Vec<Text<'a>>,
    /// Attributes of the kernel on CUDA.
    pub cuda_kernel_attrs: Vec<(Text<'a>, i64)>,
}

/// The marker before the name in the second form.
pub(crate) const SECOND_FORM: &str = "__tvm_function_info_v2__";

/// Returns the form number of a marker: 2 for [`SECOND_FORM`]; `None` for a name.
pub(crate) fn marked_form(name: &str) -> Option<u32> {
    let number = name.strip_prefix("__tvm_function_info_v")?;
    number.strip_suffix("__")?.parse().ok()
}

/// Returns the smallest size of an entry: 8 bytes for the length or count of each field (WIRE-06).
const fn smallest(layout: Layout) -> usize {
    match layout {
        Layout::V0_2 | Layout::V0_7 => 32,
        Layout::V0_21 | Layout::V0_22 => 40,
    }
}

/// Reads the map, whose entries have the fields of `layout`.
pub(super) fn read<'a>(
    layout: Layout,
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<Vec<DeviceFunction<'a>>, Violation> {
    let mut starts = Vec::new();
    let list = cursor.map(smallest(layout), "functions", |cursor| {
        // PAY-04: a repetition is reported at the offset of its key.
        starts.push(cursor.offset());
        let start = cursor.offset();
        let key = text(cursor, "key", PAY_02)?;
        check_file_name("function", &key, start, findings)?;
        let info = read_info(&key, layout, cursor, findings)?;
        Ok(DeviceFunction { key, info })
    })?;
    let mut keys = list.iter().map(|function| &*function.key).zip(starts);
    let effect = "readers up to 0.23 keep the first, later ones the last";
    // PAY-04 is disputed, so both entries are kept: the release that loads the file decides which one counts.
    note_repeats(&mut keys, PAY_04, "function", effect, findings)?;
    Ok(list)
}

/// Reads the map of forms up to 0.23, whose functions do not repeat their names. That distinguishes them from a later form that is
/// truncated or damaged (PAY-09).
pub(super) fn read_silent<'a>(
    layout: Layout,
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<Vec<DeviceFunction<'a>>, Violation> {
    let list = cursor.read("functions", |cursor| read(layout, cursor, findings))?;
    // PAY-09: one repeated name is enough, because 0.24 repeats all names (PAY-07).
    let later = list.iter().find(|function| !function.info.name.is_empty());
    let later = later.map(|function| function.key.clone());
    list.require(
        PAY_09,
        |_| later.is_none(),
        |_| {
            let name = later.as_deref().unwrap_or_default();
            format!("function `{name}` repeats its name, which no release before 0.24 writes")
        },
    )
}

/// Reads one value of the map (PAY-02). PAY-07 compares its name with `key`, which has been read.
fn read_info<'a>(
    key: &str,
    layout: Layout,
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<FunctionInfo<'a>, Violation> {
    let start = cursor.offset();
    // PAY-54: the marker is possible only in layout 0.22, the layout of all later versions.
    let form = cursor.look_ahead().str("form", PAY_54).ok();
    let form = form.filter(|_| layout >= Layout::V0_22);
    let form = form.and_then(|form| marked_form(&form));
    if let Some(form) = form.filter(|form| *form != 2) {
        let message = format!(
            "function `{key}` has information of form {form}, which a TVM after 0.27 writes: what follows is not known"
        );
        return Err(PAY_54.broken(Kind::Unsupported, start, message));
    }
    let is_second = form.is_some();
    if is_second {
        cursor.str("form", PAY_54)?;
        findings.note(PAY_54, Kind::Unsupported, start, format!(
            "function `{key}` has information of the second form, which a TVM after 0.27 writes and no release up to 0.27 reads"
        ))?;
    }
    // PAY-07: the name is repeated from 0.24 on, for webgpu from 0.16 on. Before, it is empty. Functions are looked up by the key.
    let name = cursor.str("name", PAY_02)?.expect(
        findings,
        PAY_07,
        Kind::Malformed,
        |name| name.is_empty() || *name == key,
        |name| format!("function `{key}` calls itself `{name}`"),
    )?;
    // PAY-02: any four bytes are a valid dtype here. The launcher checks whether a release supports it (TEN-33).
    let types_start = cursor.offset();
    let arg_types = cursor.vector(Dtype::SIZE, "arg_types", Dtype::read)?;
    check_types(key, layout, &arg_types, types_start, findings)?;
    let tags_start = cursor.offset();
    let launch_param_tags = names(cursor, "launch_param_tags", PAY_02)?;
    check_tags(&launch_param_tags, tags_start, findings)?;
    // PAY-03: the bytes do not show whether this field is present. Only the layout does. It is the only difference between 0.21 and
    // 0.7.
    let mut arg_extra_tags = Vec::new();
    if layout >= Layout::V0_21 {
        let start = cursor.offset();
        arg_extra_tags = cursor.vector(4, "arg_extra_tags", |cursor| {
            Ok(*cursor.i32("arg_extra_tags", PAY_03)?)
        })?;
        // PAY-08: an empty list is as valid as a list of zeros.
        let fits = arg_extra_tags.is_empty() || arg_extra_tags.len() == arg_types.len();
        let known = arg_extra_tags.iter().all(|tag| (0..=1).contains(tag));
        findings.expect(PAY_08, Kind::Malformed, fits && known, start, || {
            format!(
                "function `{key}` has {} arguments and the extra tags {arg_extra_tags:?}",
                arg_types.len()
            )
        })?;
    }
    let second = is_second.then(|| read_second(cursor)).transpose()?;
    Ok(FunctionInfo {
        name: name.into(),
        arg_types,
        launch_param_tags,
        arg_extra_tags,
        second,
    })
}

/// Notes the first argument type that no runtime passes to a kernel (PAY-58). The vector of types is at `start`.
fn check_types(
    key: &str,
    layout: Layout,
    types: &[Dtype],
    start: u64,
    findings: &mut Findings,
) -> Result<(), Violation> {
    let unpassed = types
        .iter()
        .enumerate()
        .find(|(_, dtype)| !is_passed(**dtype));
    let Some((index, dtype)) = unpassed else {
        return Ok(());
    };
    // TEN-02: uses the name in the last release with this layout.
    let shown = dtype.text(layout.releases().until).ok();
    // TEN-03: the text of a handle omits the lanes.
    let shown = shown.filter(|text| !text.is_empty() && dtype.code != Dtype::HANDLE);
    let shown = shown.unwrap_or_else(|| dtype.to_string());
    let at = (index as u64).saturating_mul(Dtype::SIZE as u64);
    // The elements come after the count of the vector.
    let at = start.saturating_add(8).saturating_add(at);
    findings.note(
        PAY_58,
        Kind::Unsupported,
        at,
        format!(
            "argument {index} of function `{key}` is {shown}, which no runtime passes to a kernel: the function cannot be launched"
        ),
    )
}

/// Returns whether runtimes pass an argument of this type to a kernel (DEV-53).
fn is_passed(dtype: Dtype) -> bool {
    let bits = match dtype.code {
        // DEV-53: the bits of a handle do not matter.
        Dtype::HANDLE => [dtype.bits, dtype.bits],
        Dtype::INT => [32, 64],
        Dtype::UINT => [32, 32],
        Dtype::FLOAT => [32, 64],
        _ => return false,
    };
    dtype.lanes == 1 && bits.contains(&dtype.bits)
}

/// Reads the fields of the second form, which follow those of the first (PAY-54).
fn read_second<'a>(cursor: &mut Cursor<'a>) -> Result<SecondForm<'a>, Violation> {
    let cuda_launch_fields = names(cursor, "cuda_launch_fields", PAY_54)?;
    // WIRE-06: an attribute takes at least 16 bytes, for a length and a number.
    let cuda_kernel_attrs = cursor.map(16, "cuda_kernel_attrs", |cursor| {
        let name = text(cursor, "name", PAY_54)?;
        Ok((name, *cursor.i64("value", PAY_54)?))
    })?;
    Ok(SecondForm {
        cuda_launch_fields,
        cuda_kernel_attrs,
    })
}

/// Tags that name an axis after the dot.
const AXES: [&str; 4] = [
    "blockIdx.",
    "threadIdx.",
    "clusterCtaIdx.",
    "preferredClusterCtaIdx.",
];

/// Tags without further parts.
const WORDS: [&str; 7] = [
    // PAY-06: unlike `vthread`, a whole tag.
    "cthread",
    "tir.use_dyn_shared_memory",
    "tirx.use_dyn_shared_memory",
    // PAY-06: every release that has this tag misspells it; it begins with `tirx` from 0.24 on. A reader does not know the release, so both
    // are accepted.
    "tir.use_programtic_dependent_launch",
    "tirx.use_programtic_dependent_launch",
    "tir.use_cooperative_launch",
    "tirx.use_cooperative_launch",
];

/// Tags with more text after their name.
const PREFIXES: [&str; 2] = ["vthread", "paramWriteAccess:"];

/// Checks each tag against PAY-05 and PAY-06. The vector of tags is at `start`.
fn check_tags(tags: &[Text<'_>], start: u64, findings: &mut Findings) -> Result<(), Violation> {
    for (index, (tag, at)) in places(tags, start).enumerate() {
        if let Some(axis) = AXES.iter().find_map(|axis| tag.strip_prefix(axis)) {
            // PAY-05: readers use the distance from `x` as an index: `blockIdx.w` would write before an array when the function is
            // fetched.
            let kept = matches!(axis, "x" | "y" | "z");
            PAY_05
                .require(kept, at, || {
                    format!("launch tag `{tag}` names axis `{axis}`, there are x, y and z")
                })
                .map_err(|broken| broken.in_field(format!("launch_param_tags[{index}]")))?;
            continue;
        }
        // PAY-05 is checked first, because an unknown axis makes readers write out of bounds. PAY-06 is only a finding, because the
        // library loads, and the error occurs only when the function is looked up.
        let known = WORDS.contains(&tag) || PREFIXES.iter().any(|prefix| tag.starts_with(prefix));
        findings.expect(PAY_06, Kind::UnknownKind, known, at, || {
            format!("launch tag {index} is `{tag}`, which no release knows: the function cannot be launched")
        })?;
    }
    Ok(())
}

/// Writes the map with the fields of `layout`.
pub(super) fn write(
    list: &[DeviceFunction<'_>],
    layout: Layout,
    out: &mut Writer,
) -> Result<(), Violation> {
    out.count(list.len());
    for DeviceFunction { key, info } in list {
        out.str(key);
        if info.second.is_some() {
            // PAY-54: a reader of an older layout would read the marker as the name.
            if layout < Layout::V0_22 {
                let message = format!(
                    "function `{key}` has information of the second form, for which layout {layout} has no place"
                );
                return Err(PAY_54.rejected(Kind::Unsupported, message));
            }
            out.str(SECOND_FORM);
        }
        out.str(&info.name);
        out.vector(&info.arg_types, |out, dtype| dtype.write(out));
        write_names(&info.launch_param_tags, out);
        if layout >= Layout::V0_21 {
            out.vector(&info.arg_extra_tags, |out, tag| out.i32(*tag));
        // PAY-03: a tag of 0 has no meaning and is left out. A tag of 1 is a tensor map, without which the kernel would get a wrong
        // argument.
        } else if info.arg_extra_tags.iter().any(|tag| *tag != 0) {
            let message = format!(
                "function `{key}` has argument tags {:?}, for which layout {layout} has no place",
                info.arg_extra_tags
            );
            return Err(PAY_03.rejected(Kind::Unsupported, message));
        }
        if let Some(second) = &info.second {
            write_names(&second.cuda_launch_fields, out);
            out.vector(&second.cuda_kernel_attrs, |out, (name, value)| {
                out.str(name);
                out.i64(*value);
            });
        }
    }
    Ok(())
}
