//! What the parsers of kinds add to a target and check of it.
//!
//! A parser sees a target between its reading and its end: up to 0.9 the options alone with their defaults, from 0.10 to 0.23 the whole object
//! before any type is checked (TGT-04), and from 0.24 on the options that the schema has accepted. Each rule states since which release it
//! holds, so that one function serves all.

use super::TargetConfig;
use super::kind::{KindParser, Targets, insert};
use crate::rule::{Kind, Violation};
use crate::target::{TGT_04, TGT_07, TGT_50, TGT_51, TGT_52, TGT_53};
use serde_json::Value;

/// The parser of this name in the table of kinds.
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

/// TGT-50: the architecture of CUDA: the one that is stated, or that of the machine.
fn cuda(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    match text(&config, "arch")? {
        Some(arch) => TGT_50.demand(Kind::Malformed, is_cuda_arch(arch, targets), || {
            format!("CUDA target gets an invalid CUDA arch: -arch={arch}")
        })?,
        None => {
            // Not checked: what a driver answers is an architecture.
            let mut arch = default_cuda_arch(targets);
            // TGT-50: from Hopper on the code of the compiler is for that architecture alone.
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

/// TGT-51: the triple of NVPTX, and the architecture, which is called `mcpu` here.
fn nvptx(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    hold_triple(&mut config, "nvptx64-nvidia-cuda", |message| {
        TGT_51.rejected(Kind::Malformed, message)
    })?;
    match text(&config, "mcpu")? {
        Some(arch) => TGT_51.demand(Kind::Malformed, is_cuda_arch(arch, targets), || {
            format!("NVPTX target gets an invalid CUDA arch: -mcpu={arch}")
        })?,
        None => {
            // TGT-51: without the `a` of TGT-50, which releases from 0.25 on add for `cuda` alone.
            let arch = default_cuda_arch(targets);
            insert(&mut config, "mcpu", &arch);
        }
    }
    Ok(config)
}

/// TGT-50: up to 0.15 digits alone follow, so that `sm_90a` is none.
fn is_cuda_arch(arch: &str, targets: &Targets) -> bool {
    let Some(number) = arch.strip_prefix("sm_") else {
        return false;
    };
    targets.release().minor() >= 16 || number.bytes().all(|digit| digit.is_ascii_digit())
}

/// TGT-50, TGT-51: the architecture of the machine's device, or the oldest that compilers of the time have.
fn default_cuda_arch(targets: &Targets) -> String {
    // TGT-50: compilers of CUDA 9 and later have no `sm_20`.
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

/// TGT-52: the triple of ROCm, and the name of the processor. `gfx900` where no device says which it is.
fn rocm(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    hold_triple(&mut config, "amdgcn-amd-amdhsa-hcc", |message| {
        TGT_52.rejected(Kind::Malformed, message)
    })?;
    match text(&config, "mcpu")? {
        Some(arch) => {
            // TGT-52: up to 0.12 digits alone, or nothing; from 0.13 on one letter or digit at least, and what is behind these is free.
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

/// The triple is this one where it is stated, and is set where it is not.
fn hold_triple(
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

/// TGT-53: warps of more than one thread need subgroups, and with these they have 32 threads, whatever is stated.
fn webgpu(mut config: TargetConfig, _: &Targets) -> Result<TargetConfig, Violation> {
    // TGT-53: what is no truth value counts as none; the schema rejected it before.
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

/// TGT-57: the kind for tests of parsers, which states one feature.
fn test(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    // TGT-57: before 0.24 features are beside the options, and in no exported form.
    if targets.release().minor() >= 24 {
        config.insert("feature.is_test".into(), true.into());
    }
    Ok(config)
}

/// The processors of Arm's M profile: how the name begins, whether it has DSP, whether it has MVE, since which release it is known.
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

/// TGT-54 to TGT-56: the triple of the machine, keys of Arm's processors, and features of their M profile.
fn cpu(mut config: TargetConfig, targets: &Targets) -> Result<TargetConfig, Violation> {
    let minor = targets.release().minor();
    let is_llvm = text(&config, "kind")? == Some("llvm");
    // TGT-54: with `mcpu` alone the triple stays unstated, and LLVM takes its own when it compiles.
    if minor >= 16 && is_llvm && !config.contains_key("mtriple") && !config.contains_key("mcpu") {
        insert(&mut config, "mtriple", &targets.machine().triple);
    }
    let model = text(&config, "mcpu")?.unwrap_or_default();
    let known = M_PROFILE
        .iter()
        .filter(|(name, _, _, since)| model.starts_with(name) && minor >= *since);
    let (mut is_m, mut dsp, mut mve) = (false, false, false);
    // `cortex-m33` begins as `cortex-m3` does: what any of them has, it has.
    for (_, has_dsp, has_mve, _) in known {
        (is_m, dsp, mve) = (true, dsp || *has_dsp, mve || *has_mve);
    }
    if is_m {
        let off =
            |flag: &str| model.contains(flag) || flags(&config).any(|attr| attr.contains(flag));
        let (no_dsp, no_mve) = (off("+nodsp"), off("+nomve"));
        // TGT-56: MVE is built on DSP, so `+nodsp` ends both.
        if minor >= 24 {
            config.insert("feature.has_dsp".into(), (dsp && !no_dsp).into());
            config.insert("feature.has_mve".into(), (mve && !no_mve && !no_dsp).into());
        }
    } else {
        let triple = text(&config, "mtriple")?.unwrap_or_default();
        // TGT-55: a `cortex-m` that the table does not have is of the A profile neither.
        let is_a32 = triple.starts_with("arm") && !model.starts_with("cortex-m");
        let is_a = minor >= 11 && (is_a32 || triple.starts_with("aarch64"));
        if !is_a {
            return Ok(config);
        }
    }
    add_arm_keys(&mut config)?;
    Ok(config)
}

/// The flags of `mattr`, such as `+neon`; what is no text is none.
fn flags(config: &TargetConfig) -> impl Iterator<Item = &str> {
    let flags = config.get("mattr").and_then(Value::as_array);
    flags.into_iter().flatten().filter_map(Value::as_str)
}

/// TGT-55: behind stated keys, each once; instead of those of the kind, where none are stated.
fn add_arm_keys(config: &mut TargetConfig) -> Result<(), Violation> {
    let keys = config
        .entry("keys")
        .or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(keys) = keys else {
        return Err(TGT_07.rejected(Kind::Type, "Expect type of field \"keys\" is Array"));
    };
    for key in ["arm_cpu", "cpu"] {
        if !keys.iter().any(|old| old == key) {
            keys.push(key.into());
        }
    }
    Ok(())
}

/// An option that is text. From 0.10 to 0.23 parsers run before types are checked (TGT-04).
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
