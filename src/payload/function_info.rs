//! The function map: what a launcher must know of every device function.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | key | string: the name under which the function is looked up | PAY-02 |
//! | name | string: empty up to 0.23, the key from 0.24 | PAY-02, PAY-07 |
//! | arg_types | vector of dtypes, 4 bytes each | PAY-02 |
//! | launch_param_tags | vector of strings (`thread_axis_tags` up to 0.7) | PAY-02, PAY-05, PAY-06 |
//! | arg_extra_tags | vector of i32 | PAY-03, PAY-08; layouts 0.21 and 0.22 only |
//!
//! A TVM after 0.27 writes a second form (PAY-54): the string `__tvm_function_info_v2__` in front of the name, and behind the tags
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
    /// How it is launched.
    pub info: FunctionInfo<'a>,
}

/// How a device function is launched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionInfo<'a> {
    /// The name once more: empty in what 0.2 to 0.23 write, equal to the key from 0.24 on.
    pub name: Text<'a>,
    /// Argument types, without the launch parameters. A pointer is `handle`.
    pub arg_types: Vec<Dtype>,
    /// What each trailing argument means: `blockIdx.x`, `threadIdx.y`, `tir.use_dyn_shared_memory`, ...
    pub launch_param_tags: Vec<Text<'a>>,
    /// Per argument 0, or 1 for a tensor map. Empty before 0.21, and in what webgpu writes.
    pub arg_extra_tags: Vec<i32>,
    /// What only the second form has, which a TVM after 0.27 writes; `None` in the first.
    pub second: Option<SecondForm<'a>>,
}

/// The fields that the second form of function information adds (PAY-54).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecondForm<'a> {
    /// What further arguments of a launch on CUDA mean.
    pub cuda_launch_fields: Vec<Text<'a>>,
    /// Attributes of the kernel on CUDA.
    pub cuda_kernel_attrs: Vec<(Text<'a>, i64)>,
}

/// What stands in the place of the name in the second form.
pub(crate) const SECOND_FORM: &str = "__tvm_function_info_v2__";

/// Counts or lengths of 8 bytes: key, name, arg_types, launch_param_tags, and from 0.21 on arg_extra_tags (WIRE-06).
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
        // PAY-04: a repetition is named by the place of its key.
        starts.push(cursor.offset());
        let start = cursor.offset();
        let key = text(cursor, "key", PAY_02)?;
        check_file_name("function", &key, start, findings)?;
        let info = read_info(&key, layout, cursor, findings)?;
        Ok(DeviceFunction { key, info })
    })?;
    let mut keys = list.iter().map(|function| &*function.key).zip(starts);
    let effect = "readers up to 0.23 keep the first, later ones the last";
    // PAY-04 is disputed, so both are kept: which one counts depends on the release that loads the file.
    note_repeats(&mut keys, PAY_04, "function", effect, findings)?;
    Ok(list)
}

/// The map as forms up to 0.23 have it. What distinguishes them from a later one that is cut short or damaged is that
/// its functions do not repeat their names (PAY-09).
pub(super) fn read_silent<'a>(
    layout: Layout,
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<Vec<DeviceFunction<'a>>, Violation> {
    let list = cursor.read("functions", |cursor| read(layout, cursor, findings))?;
    // PAY-09: one is enough: 0.24 repeats all names (PAY-07).
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

/// One value of the map (PAY-02), whose key has been read: PAY-07 compares its name with it.
fn read_info<'a>(
    key: &str,
    layout: Layout,
    cursor: &mut Cursor<'a>,
    findings: &mut Findings,
) -> Result<FunctionInfo<'a>, Violation> {
    let start = cursor.offset();
    // PAY-54: looked for in layout 0.22 alone: nothing later has another.
    let is_second = layout >= Layout::V0_22
        && cursor
            .look_ahead()
            .str("form", PAY_54)
            .is_ok_and(|form| *form == SECOND_FORM);
    if is_second {
        cursor.str("form", PAY_54)?;
        findings.note(PAY_54, Kind::Unsupported, start, format!(
            "function `{key}` has information of the second form, which a TVM after 0.27 writes and no release up to 0.27 reads"
        ))?;
    }
    // PAY-07: repeated from 0.24 on. Before, every release leaves it empty, and looks functions up by the key.
    let name = cursor.str("name", PAY_02)?.expect(
        findings,
        PAY_07,
        Kind::Malformed,
        |name| name.is_empty() || *name == key,
        |name| format!("function `{key}` calls itself `{name}`"),
    )?;
    // PAY-02: any four bytes are a dtype. Whether a release has it (TEN-33) is for who launches the function.
    let types_start = cursor.offset();
    let arg_types = cursor.vector(Dtype::SIZE, "arg_types", Dtype::read)?;
    check_types(key, &arg_types, types_start, findings)?;
    let tags_start = cursor.offset();
    let launch_param_tags = names(cursor, "launch_param_tags", PAY_02)?;
    check_tags(&launch_param_tags, tags_start, findings)?;
    // PAY-03: nothing in the bytes announces this field, the layout alone does. It is all in which 0.21 differs from 0.7.
    let mut arg_extra_tags = Vec::new();
    if layout >= Layout::V0_21 {
        let start = cursor.offset();
        arg_extra_tags = cursor.vector(4, "arg_extra_tags", |cursor| {
            Ok(*cursor.i32("arg_extra_tags", PAY_03)?)
        })?;
        // PAY-08: an empty list is as good as one of zeros.
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

/// Holds the types of the arguments, a vector at `start`, to PAY-58.
fn check_types(
    key: &str,
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
    let shown = dtype.exact_text();
    let shown = shown.unwrap_or_else(|| format!("{dtype:?}"));
    let at = (index as u64).saturating_mul(Dtype::SIZE as u64);
    // Behind the count of the vector.
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

/// Whether runtimes pass an argument of this type to a kernel (DEV-53).
fn is_passed(dtype: Dtype) -> bool {
    let bits = match dtype.code {
        Dtype::HANDLE => return true,
        Dtype::INT => [32, 64],
        Dtype::UINT => [32, 32],
        Dtype::FLOAT => [32, 64],
        _ => return false,
    };
    dtype.lanes == 1 && bits.contains(&dtype.bits)
}

/// The fields of the second form, behind those of the first (PAY-54).
fn read_second<'a>(cursor: &mut Cursor<'a>) -> Result<SecondForm<'a>, Violation> {
    let cuda_launch_fields = names(cursor, "cuda_launch_fields", PAY_54)?;
    // WIRE-06: a length and a number.
    let cuda_kernel_attrs = cursor.map(16, "cuda_kernel_attrs", |cursor| {
        let name = text(cursor, "name", PAY_54)?;
        Ok((name, *cursor.i64("value", PAY_54)?))
    })?;
    Ok(SecondForm {
        cuda_launch_fields,
        cuda_kernel_attrs,
    })
}

/// Tags that name an axis behind the dot.
const AXES: [&str; 4] = [
    "blockIdx.",
    "threadIdx.",
    "clusterCtaIdx.",
    "preferredClusterCtaIdx.",
];

/// Tags that stand alone.
const WORDS: [&str; 6] = [
    "tir.use_dyn_shared_memory",
    "tirx.use_dyn_shared_memory",
    // PAY-06: so spelt in every release that has it; `tirx` from 0.24 on. A reader does not know the release, and takes both.
    "tir.use_programtic_dependent_launch",
    "tirx.use_programtic_dependent_launch",
    "tir.use_cooperative_launch",
    "tirx.use_cooperative_launch",
];

/// Tags that carry something behind their name.
const PREFIXES: [&str; 3] = ["vthread", "cthread", "paramWriteAccess:"];

/// Holds each tag, a vector of strings at `start`, to PAY-05 and PAY-06.
fn check_tags(tags: &[Text<'_>], start: u64, findings: &mut Findings) -> Result<(), Violation> {
    for (index, (tag, at)) in places(tags, start).enumerate() {
        if let Some(axis) = AXES.iter().find_map(|axis| tag.strip_prefix(axis)) {
            // PAY-05: readers take the distance from `x` as an index: `threadIdx.w` writes in front of an array when the
            // function is fetched.
            let kept = matches!(axis, "x" | "y" | "z");
            PAY_05
                .require(kept, at, || {
                    format!("launch tag `{tag}` names axis `{axis}`, there are x, y and z")
                })
                .map_err(|broken| broken.in_field(format!("launch_param_tags[{index}]")))?;
            continue;
        }
        // PAY-05 comes first: an axis of another letter is no unknown tag, it makes readers write out of bounds.
        // PAY-06: a finding, because the library loads: only fetching the function fails.
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
            // PAY-54: a reader of an older layout would take the marker for the name.
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
        // PAY-03: a tag of 0 means nothing and is left out. One of 1 is a tensor map: without it the kernel gets a wrong argument.
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
