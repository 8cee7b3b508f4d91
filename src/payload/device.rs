//! Device code: kernels as source text or binary, with their function map.
//!
//! | form | fields, in order | rule |
//! |---|---|---|
//! | all others | `format`, `functions`, `data` | PAY-10 |
//! | opencl 0.13 | `functions`, `shaders` | PAY-13 |
//! | metal 0.13 | `version`, `kernels`, `functions`, `format` | PAY-16 |
//! | metal 0.24 | `format`, `functions`, `kernels` | PAY-18 |
//! | vulkan | `format`, `functions`, `shaders` | PAY-19 |
//! | webgpu | `functions`, `kernels` | PAY-20 |
//! | opengl | `format`, `functions`, `shaders_json` | PAY-21 |
//!
//! A kernel is a name and a string of code. A shader is a name, u32 flags and a vector of u32 words (PAY-14). From 0.24 on, a u64 length
//! comes before flags and words (PAY-15).

use super::field::{KernelCode, Shader};
use super::kinds::PayloadForm;
use super::slot::{FieldShape, FormSlot};
use super::strings::text;
use super::{
    Checked, Field, PAY_10, PAY_11, PAY_12, PAY_13, PAY_14, PAY_15, PAY_16, PAY_17, PAY_18, PAY_19,
    PAY_20, PAY_21, PAY_22, PAY_59, Text,
};
use crate::file_name::is_file_name;
use crate::release::{Layout, Releases};
use crate::rule::{Findings, Kind, Rule, Violation};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// Returns the slots of PAY-10: format, functions, data.
const fn code(formats: &'static [&'static str], functions: FieldShape) -> [FormSlot; 3] {
    [
        FormSlot::new("format", FieldShape::Format(formats), PAY_10),
        FormSlot::new("functions", functions, PAY_10),
        FormSlot::new("data", FieldShape::Code, PAY_10),
    ]
}

/// The slots of `cuda`: PTX, CUDA binary code, or source.
const CUDA_CODE: &[FormSlot] = &code(
    &["ptx", "cubin", "fatbin", "cuda", "cu"],
    FieldShape::Functions,
);
/// The slots of `opencl`, `sdaccel` and `aocl`: source, or a binary for a device.
const OPENCL_CODE: &[FormSlot] = &code(
    &["cl", "clbin", "xclbin", "awsxclbin", "aocx"],
    FieldShape::Functions,
);
// PAY-09: in forms that no release after 0.23 writes, functions do not repeat their names. Otherwise a truncated payload of 0.24 could be
// read as one of them.
/// The slots of form 0.2 of `metal`.
const METAL_CODE: &[FormSlot] = &code(METAL_FORMATS, FieldShape::SilentFunctions);
/// The formats of `metal`: source, or a Metal library.
const METAL_FORMATS: &[&str] = &["metal", "metallib"];
/// The slots of `hip` and `hsaco`: a ROCm code object, or source.
const HIP_CODE: &[FormSlot] = &code(&["hsaco", "hip"], FieldShape::Functions);
/// The slots of `nki`.
const NKI_CODE: &[FormSlot] = &code(&["Trainium", "Trainiumlib"], FieldShape::Functions);
// PAY-12: the formats are extensions of a library, LLVM IR, an object and assembly, and the kind itself.
/// The slots of `hexagon` and `hex`.
const HEXAGON_CODE: &[FormSlot] = &code(&["so", "ll", "o", "s", "hexagon"], FieldShape::Functions);

// PAY-10: this is one form since 0.2, because only the functions in it have changed (PAY-03), and those depend on the layout.
/// The form of `cuda`.
pub(super) const CUDA: &[PayloadForm] = &[PayloadForm::new("0.2", Releases::ALL, CUDA_CODE)];

/// The forms of `opencl`. PAY-13: the SPIR-V form has no format. 0.13 to 0.23 write it, and no release reads it.
pub(super) const OPENCL: &[PayloadForm] = &[
    PayloadForm::new("0.2", Releases::ALL, OPENCL_CODE).checked(check_opencl),
    PayloadForm::new(
        "0.13",
        Releases::between(13, 23),
        &[
            FormSlot::new("functions", FieldShape::SilentFunctions, PAY_13),
            FormSlot::new("shaders", FieldShape::Shaders { framed: false }, PAY_13),
        ],
    ),
];

// PAY-99: releases write these kinds, but none ever registered a loader for them.
/// The form of `sdaccel` and `aocl`.
pub(super) const FPGA: &[PayloadForm] = &[PayloadForm::new(
    "0.4",
    Releases::between(4, 19),
    OPENCL_CODE,
)];

/// The forms of `metal`, newest first. Form 0.2 is written up to 0.23. From 0.13 on, only compilers without Metal write it (PAY-10), and
/// those with Metal write form 0.13 (PAY-16).
pub(super) const METAL: &[PayloadForm] = &[
    PayloadForm::new(
        "0.24",
        Releases::from(24),
        &[
            FormSlot::new("format", FieldShape::Format(METAL_FORMATS), PAY_18),
            FormSlot::new("functions", FieldShape::Functions, PAY_18),
            FormSlot::new("kernels", FieldShape::Kernels, PAY_18),
        ],
    ),
    PayloadForm::new(
        "0.13",
        Releases::between(13, 23),
        &[
            FormSlot::new("version", FieldShape::Version, PAY_16),
            FormSlot::new("kernels", FieldShape::Kernels, PAY_16),
            FormSlot::new("functions", FieldShape::SilentFunctions, PAY_16),
            FormSlot::new("format", FieldShape::Format(METAL_FORMATS), PAY_16),
        ],
    ),
    PayloadForm::new("0.2", Releases::between(2, 23), METAL_CODE),
];

/// The form of `hip`.
pub(super) const HIP: &[PayloadForm] = &[PayloadForm::new("0.2", Releases::ALL, HIP_CODE)];

// PAY-99: a compiler without ROCm writes it up to 0.23, and every release loads it.
/// The form of `hsaco`, which equals that of `hip`.
pub(super) const HSACO: &[PayloadForm] =
    &[PayloadForm::new("0.3", Releases::between(3, 23), HIP_CODE)];

/// The form of `nki`.
pub(super) const NKI: &[PayloadForm] = &[PayloadForm::new("0.25", Releases::from(25), NKI_CODE)];

// PAY-12: there is only one format, and yet every payload stores it (PAY-19).
/// The format of `vulkan`.
const VULKAN_FORMATS: &[&str] = &["vulkan"];

/// The forms of `vulkan`, newest first. They differ in the length before each shader (PAY-15).
pub(super) const VULKAN: &[PayloadForm] = &[
    PayloadForm::new(
        "0.24",
        Releases::from(24),
        &[
            FormSlot::new("format", FieldShape::Format(VULKAN_FORMATS), PAY_19),
            FormSlot::new("functions", FieldShape::Functions, PAY_19),
            FormSlot::new("shaders", FieldShape::Shaders { framed: true }, PAY_19),
        ],
    ),
    PayloadForm::new(
        "0.3",
        Releases::between(3, 23),
        &[
            FormSlot::new("format", FieldShape::Format(VULKAN_FORMATS), PAY_19),
            FormSlot::new("functions", FieldShape::SilentFunctions, PAY_19),
            FormSlot::new("shaders", FieldShape::Shaders { framed: false }, PAY_19),
        ],
    ),
];

// PAY-20: there is no format, because the code is always WGSL.
/// The form of `webgpu`.
pub(super) const WEBGPU: &[PayloadForm] = &[PayloadForm::new(
    "0.12",
    Releases::from(12),
    &[
        FormSlot::new("functions", FieldShape::Functions, PAY_20),
        FormSlot::new("kernels", FieldShape::Kernels, PAY_20),
    ],
)];

/// The form of `opengl`.
pub(super) const OPENGL: &[PayloadForm] = &[PayloadForm::new(
    "0.2",
    Releases::between(2, 6),
    &[
        FormSlot::new("format", FieldShape::Format(&["gl"]), PAY_21),
        FormSlot::new("functions", FieldShape::Functions, PAY_21),
        // PAY-21: the string is a JSON object, and the shaders are its member `shaders`.
        FormSlot::new("shaders_json", FieldShape::Text, PAY_21),
    ],
)];

/// The form of `hexagon`.
pub(super) const HEXAGON: &[PayloadForm] =
    &[PayloadForm::new("0.7", Releases::from(7), HEXAGON_CODE)];

// PAY-99: a compiler without Hexagon writes this kind up to 0.23. No release loads it.
/// The form of `hex`, which equals that of `hexagon`.
pub(super) const HEX: &[PayloadForm] = &[PayloadForm::new(
    "0.7",
    Releases::between(7, 23),
    HEXAGON_CODE,
)];

/// Reads the version at the start of form 0.13 of `metal`, and checks that it is one (PAY-17).
pub(super) fn read_version<'a>(
    cursor: &mut Cursor<'a>,
    field: &str,
    rule: Rule,
) -> Result<Text<'a>, Violation> {
    // PAY-17: writers write `0.1.0`, and readers ignore it. The check distinguishes this form from 0.2, which begins with a format.
    let version = cursor.str(field, rule)?.require(
        PAY_17,
        |version| !version.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == '.'),
        |version| {
            format!(
                "`{}` is not a version of digits and dots",
                version.escape_debug()
            )
        },
    )?;
    Ok(version.into())
}

/// Reads a format. It must be a word (PAY-11), and one of the formats of its kind (PAY-12).
pub(super) fn read_format<'a>(
    cursor: &mut Cursor<'a>,
    field: &str,
    rule: Rule,
    known: &[&str],
    findings: &mut Findings,
) -> Result<Text<'a>, Violation> {
    let format = cursor.str(field, rule)?;
    // PAY-11: no released reader checks this. Here it distinguishes a format from the count with which other forms begin.
    format.require(
        PAY_11,
        |format| !format.is_empty() && format.chars().all(|c| c.is_ascii_graphic()),
        |format| format!("format `{}` is not a word", format.escape_debug()),
    )?;
    let format = format.expect(
        findings,
        PAY_12,
        Kind::UnknownKind,
        |format| known.contains(format),
        |format| format!("format `{format}` is not one of {}", known.join(", ")),
    )?;
    Ok(format.into())
}

/// Reads a map from name to code: a u64 count, and two strings for each entry. Repeated names are kept.
pub(super) fn read_kernels<'a>(
    cursor: &mut Cursor<'a>,
    field: &'static str,
    rule: Rule,
    findings: &mut Findings,
) -> Result<Vec<KernelCode<'a>>, Violation> {
    // WIRE-06: an entry takes at least 16 bytes, for two lengths.
    cursor.map(16, field, |cursor| {
        Ok(KernelCode {
            name: read_name(cursor, rule, findings)?,
            code: Cow::Borrowed(cursor.bytes("code", rule)?),
        })
    })
}

/// Reads the name of a kernel (PAY-59).
fn read_name<'a>(
    cursor: &mut Cursor<'a>,
    rule: Rule,
    findings: &mut Findings,
) -> Result<Text<'a>, Violation> {
    let start = cursor.offset();
    let name = text(cursor, "name", rule)?;
    check_file_name("kernel", &name, start, findings)?;
    Ok(name)
}

/// Adds a finding for a name of a kernel or function that cannot be a file name, because files are named after it (PAY-59).
pub(super) fn check_file_name(
    what: &str,
    name: &str,
    start: u64,
    findings: &mut Findings,
) -> Result<(), Violation> {
    let kept = name.is_empty() || is_file_name(name);
    findings.expect(PAY_59, Kind::Malformed, kept, start, || {
        let name = name.escape_debug();
        format!("{what} `{name}` has a name that no file can have on every system")
    })
}

/// Writes kernels: the inverse of [`read_kernels`].
pub(super) fn write_kernels(list: &[KernelCode<'_>], out: &mut Writer) {
    out.vector(list, |out, kernel| {
        out.str(&kernel.name);
        out.bytes(&kernel.code);
    });
}

/// Reads a map from name to shader; from 0.24 on, each shader has a length before it (PAY-15).
pub(super) fn read_shaders<'a>(
    cursor: &mut Cursor<'a>,
    field: &'static str,
    rule: Rule,
    framed: bool,
    findings: &mut Findings,
) -> Result<Vec<Shader<'a>>, Violation> {
    // WIRE-06: the smallest entry has the length of the name, flags and the count of words; if framed, also the length of the shader.
    cursor.map(if framed { 28 } else { 20 }, field, |cursor| {
        let name = read_name(cursor, rule, findings)?;
        if !framed {
            return read_shader(name, cursor);
        }
        // PAY-15: from 0.24 on, a shader is stored as a separate string, whose length bounds its words.
        let mut window = cursor.window("shader")?;
        let shader = read_shader(name, &mut window)?;
        PAY_15
            .require_as(Kind::Trailing, window.is_at_end(), window.offset(), || {
                format!(
                    "{} bytes follow the words of shader `{}`",
                    window.remaining(),
                    shader.name
                )
            })
            .map_err(|broken| broken.in_field("shader"))?;
        // Needed only if PAY-15 is switched off: the trailing bytes are skipped, so that the next shader is found.
        window.finish("the shader", findings)?;
        Ok(shader)
    })
}

/// Reads a shader: flags, and then a vector of 32-bit words (PAY-14).
fn read_shader<'a>(name: Text<'a>, cursor: &mut Cursor<'a>) -> Result<Shader<'a>, Violation> {
    let flags = *cursor.u32("flags", PAY_14)?;
    // PAY-14: the count is in words, not in bytes.
    let count = cursor.count(4, "spirv")?;
    let spirv = cursor.take((count as u64).saturating_mul(4), "spirv", PAY_14)?;
    Ok(Shader {
        name,
        flags,
        spirv: Cow::Borrowed(spirv),
    })
}

/// Writes shaders: the inverse of [`read_shaders`].
pub(super) fn write_shaders(list: &[Shader<'_>], framed: bool, out: &mut Writer) {
    out.vector(list, |out, shader| {
        out.str(&shader.name);
        if framed {
            // PAY-15: the length includes the u32 flags and the u64 count of words.
            out.count(shader.spirv.len().saturating_add(12));
        }
        out.u32(shader.flags);
        // PAY-14: the count is in words. A partial word cannot occur: neither decoding nor the JSON form accepts one.
        out.count(shader.spirv.len() / 4);
        out.raw(&shader.spirv);
    });
}

/// Checks that OpenCL source has a delimiter line for each function, because releases from 0.8 on split it there (PAY-22).
fn check_opencl(checked: &Checked<'_, '_>, findings: &mut Findings) -> Result<(), Violation> {
    const DELIMITER: &[u8] = b"// Function: ";
    let Some((Field::Text(format), _)) = checked.field("format") else {
        return Ok(());
    };
    let Some((Field::Functions(functions), _)) = checked.field("functions") else {
        return Ok(());
    };
    let Some((Field::Bytes(source), start)) = checked.field("data") else {
        return Ok(());
    };
    // PAY-22: only source is split, and only from 0.8 on.
    if format != "cl" || checked.layout == Layout::V0_2 {
        return Ok(());
    }
    // PAY-22: delimiters are counted as releases search for them: anywhere in the source, also inside comments and strings.
    let starts = source.windows(DELIMITER.len());
    let delimiters = starts.filter(|bytes| *bytes == DELIMITER).count();
    // PAY-22: 0.7 has the same layout, but writes no delimiters and does not split.
    if delimiters == 0 && checked.layout == Layout::V0_7 {
        return Ok(());
    }
    findings.expect(
        PAY_22,
        Kind::Malformed,
        delimiters == functions.len(),
        start,
        || {
            format!(
                "the source has {delimiters} delimiter lines `// Function: name` for {} functions",
                functions.len()
            )
        },
    )?;
    // PAY-22: the last line is the text after the last newline. If the file ends with a newline, it is empty.
    let tail = source.rsplit(|byte| *byte == b'\n').next();
    // Readers search for the delimiter anywhere, not only at the start of a line.
    let open = tail.is_some_and(|line| line.windows(DELIMITER.len()).any(|part| part == DELIMITER));
    findings.expect(PAY_22, Kind::Malformed, !open, start, || {
        "the last delimiter line is not ended: released readers loop for ever on it".to_owned()
    })
}
