//! The parsers of kinds, which add options to a target and check them.
//!
//! Up to 0.9, a parser gets only the options, with their defaults. From 0.10 to 0.23, it gets the whole object before any type is
//! checked (TGT-04). From 0.24 on, it gets the options that the schema has accepted. Each rule states the release from which it
//! applies, so one function serves all of them.

use super::TargetConfig;
use super::kind::{KindParser, Targets, insert};
use crate::rule::{Kind, Violation};
use crate::target::{TGT_04, TGT_07, TGT_50, TGT_51, TGT_52, TGT_53};
use serde_json::Value;

/// Returns the parser of this name in the table of kinds.
pub(super) fn built_in(name: &str) -> Option<KindParser> {
    Some(match name {
        "cuda" => KindParser::new(cuda),
        "nvptx" => KindParser::new(nvptx),
        "rocm" => KindParser::new(rocm),
        "webgpu" => KindParser::new(webgpu),
        "cpu" => KindParser::new(cpu),
        "test" => KindParser::new(test),
        _ => return None,
    })
}

/// Sets the architecture of CUDA: the stated one, or that of the machine (TGT-50).
fn cuda(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    match text(&config, "arch")? {
        Some(arch) => TGT_50.demand(Kind::Malformed, is_cuda_arch(arch, targets), || {
            format!("CUDA target gets an invalid CUDA arch: -arch={arch}")
        })?,
        None => {
            // The answer of a driver is a valid architecture, so it is not checked.
            let mut arch = default_cuda_arch(targets);
            // TGT-50: from Hopper on the compiler generates code for exactly that architecture.
            let number = arch
                .strip_prefix("sm_")
                .and_then(|number| number.parse().ok());
            if targets.release().minor() >= 25 && number.is_some_and(|number: u32| number >= 90) {
                arch.push('a');
            }
            insert(&mut config, "arch", &arch);
        }
    }
    Ok(config)
}

/// Sets the triple of NVPTX, and the architecture, which is called `mcpu` here (TGT-51).
fn nvptx(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    check_or_set_triple(&mut config, "nvptx64-nvidia-cuda", |message| {
        TGT_51.rejected(Kind::Malformed, message)
    })?;
    match text(&config, "mcpu")? {
        Some(arch) => TGT_51.demand(Kind::Malformed, is_cuda_arch(arch, targets), || {
            format!("NVPTX target gets an invalid CUDA arch: -mcpu={arch}")
        })?,
        None => {
            // TGT-51: without the `a` of TGT-50, which releases from 0.25 on add only for `cuda`.
            let arch = default_cuda_arch(targets);
            insert(&mut config, "mcpu", &arch);
        }
    }
    Ok(config)
}

/// Returns whether `arch` is an architecture of CUDA (TGT-50). Up to 0.15 only digits may follow, so `sm_90a` is not.
fn is_cuda_arch(arch: &str, targets: &Targets) -> bool {
    let Some(number) = arch.strip_prefix("sm_") else {
        return false;
    };
    targets.release().minor() >= 16 || number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Returns the architecture of the machine's device, or the oldest that compilers of the time support (TGT-50, TGT-51).
fn default_cuda_arch(targets: &Targets) -> String {
    // TGT-50: compilers of CUDA 9 and later do not support `sm_20`.
    let unknown = if targets.release().minor() < 12 {
        "sm_20"
    } else {
        "sm_50"
    };
    targets
        .machine()
        .cuda_arch
        .clone()
        .unwrap_or_else(|| unknown.into())
}

/// Sets the triple of ROCm, and the name of the processor, which is `gfx900` if no device states another (TGT-52).
fn rocm(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    check_or_set_triple(&mut config, "amdgcn-amd-amdhsa-hcc", |message| {
        TGT_52.rejected(Kind::Malformed, message)
    })?;
    match text(&config, "mcpu")? {
        Some(arch) => {
            // TGT-52: up to 0.12 only digits may follow, or nothing. From 0.13 on at least one letter or digit follows, and then
            // any text.
            let number = arch.strip_prefix("gfx");
            let fits = number.is_some_and(|number| match targets.release().minor() {
                ..13 => number.bytes().all(|digit| digit.is_ascii_digit()),
                _ => number.starts_with(|letter: char| letter.is_ascii_alphanumeric()),
            });
            TGT_52.demand(Kind::Malformed, fits, || {
                format!("ROCm target gets an invalid GFX version: -mcpu={arch}")
            })?;
        }
        None => {
            let arch = targets.machine().rocm_arch.clone();
            insert(&mut config, "mcpu", arch.as_deref().unwrap_or("gfx900"));
        }
    }
    Ok(config)
}

/// Checks a stated triple against this one, or sets it.
fn check_or_set_triple(
    config: &mut TargetConfig,
    triple: &str,
    wrong: fn(String) -> Violation,
) -> Result<(), Violation> {
    match config.get("mtriple") {
        None => insert(config, "mtriple", triple),
        Some(Value::String(stated)) if stated == triple => {}
        Some(other) => {
            return Err(wrong(format!(
                "Expects \"mtriple\" to be \"{triple}\", but gets: {other}"
            )));
        }
    }
    Ok(())
}

/// Checks that warps of more than one thread have subgroups. With subgroups, a warp has 32 threads, even if another number is stated
/// (TGT-53).
fn webgpu(mut config: TargetConfig, _: &Targets) -> Result<TargetConfig, Violation> {
    // TGT-53: a value that is not a bool counts as missing; the schema has rejected it before.
    let subgroups = config.get("supports_subgroups").and_then(Value::as_bool) == Some(true);
    let warp = config
        .get("thread_warp_size")
        .and_then(Value::as_i64)
        .unwrap_or(1);
    TGT_53.demand(Kind::Malformed, subgroups || warp <= 1, || {
        format!("WebGPU target with thread_warp_size={warp} requires supports_subgroups=true")
    })?;
    if subgroups {
        config.insert("thread_warp_size".into(), 32.into());
    }
    Ok(config)
}

/// Parses the kind for tests of parsers, which states one feature (TGT-57).
fn test(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    // TGT-57: before 0.24 features are stored apart from the options, and no exported form contains them.
    if targets.release().minor() >= 24 {
        config.insert("feature.is_test".into(), true.into());
    }
    Ok(config)
}

/// The processors of Arm's M profile: the prefix of the name, `true` for DSP, `true` for MVE, and the first release that knows it.
const M_PROFILE: [(&str, bool, bool, u8); 8] = [
    ("cortex-m0", false, false, 10),
    ("cortex-m3", false, false, 10),
    ("cortex-m4", true, false, 10),
    ("cortex-m7", true, false, 10),
    ("cortex-m33", true, false, 10),
    ("cortex-m35p", true, false, 10),
    ("cortex-m55", true, true, 10),
    ("cortex-m85", true, true, 12),
];

/// Sets the triple of the machine, the keys of Arm's processors, and the features of their M profile (TGT-54 to TGT-56).
fn cpu(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    let minor = targets.release().minor();
    let is_llvm = text(&config, "kind")? == Some("llvm");
    // TGT-54: with only `mcpu` the triple remains unstated, and LLVM uses its own when it compiles.
    if minor >= 16 && is_llvm && !config.contains_key("mtriple") && !config.contains_key("mcpu") {
        insert(&mut config, "mtriple", &targets.machine().triple);
    }
    let model = text(&config, "mcpu")?.unwrap_or_default();
    let known = M_PROFILE
        .iter()
        .filter(|(name, _, _, since)| model.starts_with(name) && minor >= *since);
    let (mut is_m, mut dsp, mut mve) = (false, false, false);
    // `cortex-m33` also matches the prefix `cortex-m3`, so the features of all matches are joined.
    for (_, has_dsp, has_mve, _) in known {
        (is_m, dsp, mve) = (true, dsp || *has_dsp, mve || *has_mve);
    }
    if is_m {
        let off =
            |flag: &str| model.contains(flag) || flags(&config).any(|attr| attr.contains(flag));
        let (no_dsp, no_mve) = (off("+nodsp"), off("+nomve"));
        // TGT-56: MVE requires DSP, so `+nodsp` disables both.
        if minor >= 24 {
            config.insert("feature.has_dsp".into(), (dsp && !no_dsp).into());
            config.insert("feature.has_mve".into(), (mve && !no_mve && !no_dsp).into());
        }
    } else {
        let triple = text(&config, "mtriple")?.unwrap_or_default();
        // TGT-55: a `cortex-m` that is not in the table does not belong to the A profile either.
        let is_a32 = triple.starts_with("arm") && !model.starts_with("cortex-m");
        let is_a = minor >= 11 && (is_a32 || triple.starts_with("aarch64"));
        if !is_a {
            return Ok(config);
        }
    }
    // TGT-55: the A profile came with 0.11, whose parser adds one key.
    let added: &[&str] = if is_m || minor >= 12 {
        &["arm_cpu", "cpu"]
    } else {
        &["arm_cpu"]
    };
    add_arm_keys(&mut config, added)?;
    Ok(config)
}

/// Returns the flags of `mattr`, such as `+neon`; a value that is not text is skipped.
fn flags(config: &TargetConfig) -> impl Iterator<Item = &str> {
    let flags = config.get("mattr").and_then(Value::as_array);
    flags.into_iter().flatten().filter_map(Value::as_str)
}

/// Adds the keys of Arm after stated keys, or instead of the kind's keys if none are stated (TGT-55).
fn add_arm_keys(config: &mut TargetConfig, added: &[&str]) -> Result<(), Violation> {
    let keys = config
        .entry("keys")
        .or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(keys) = keys else {
        return Err(TGT_07.rejected(Kind::Type, "Expect type of field \"keys\" is Array"));
    };
    keys.extend(added.iter().map(|key| Value::from(*key)));
    Ok(())
}

/// Returns an option that is text. From 0.10 to 0.23 parsers run before types are checked (TGT-04).
fn text<'c>(config: &'c TargetConfig, name: &str) -> Result<Option<&'c str>, Violation> {
    match config.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(TGT_04.rejected(
            Kind::Type,
            format!(
                "Error when parsing target[\"{name}\"]: Expects type \"String\" for object: {other}"
            ),
        )),
    }
}
