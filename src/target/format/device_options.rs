//! Values that targets take from a device: options by their names, and whole targets.

use super::kind::{OptionType, TargetKind, Targets};
use super::{Target, TargetConfig};
use crate::rule::{Kind, Violation};
use crate::target::{TGT_58, TGT_59};
use serde_json::{Value, json};

impl Targets {
    /// Returns the target of the device `name:id`, where `name` is the name of the device type. `answer` returns the device's answer to
    /// the name of an attribute (`exist`, `max_threads_per_block`, `warp_size`, ...; DEV-09) or of a target property. It returns null
    /// if the device has no answer.
    ///
    /// ```
    /// use serde_json::{Value, json};
    /// use tvmspec::release::Release;
    /// use tvmspec::target::Targets;
    ///
    /// let answer = |name: &str| match name {
    ///     "exist" => json!(true),
    ///     "compute_version" => json!("8.6"),
    ///     "max_threads_per_block" => json!(1024),
    ///     _ => Value::Null,
    /// };
    /// let target = Targets::new(Release::of(27)).detect("cuda", 0, &answer)?;
    /// assert_eq!((target.kind.as_str(), &target.attrs["arch"]), ("cuda", &json!("sm_86")));
    /// # Ok::<(), tvmspec::rule::Violation>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns TGT-59: unsupported for a type that the release does not detect, missing if the device does not exist; the errors of
    /// [`Targets::read_config`].
    pub fn detect(
        &self,
        name: &str,
        id: i64,
        answer: &dyn Fn(&str) -> Value,
    ) -> Result<Target, Violation> {
        let minor = self.release.minor();
        let options = detected(minor, name);
        TGT_59.demand(Kind::Unsupported, options.is_some(), || {
            format!("Auto detection for device `{name}` is not supported")
        })?;
        // DEV-08: device APIs answer `exist` with a number; a caller of this function may answer with a bool.
        let exists = !matches!(answer("exist"), Value::Null | Value::Bool(false))
            && answer("exist").as_i64() != Some(0);
        TGT_59.demand(Kind::Missing, exists, || {
            format!(
                "Cannot detect device `{name}:{id}`. Please make sure the device and its driver is installed properly, and TVM is \
                 compiled with the driver"
            )
        })?;
        let kind = if name == "cpu" { "llvm" } else { name };
        let declared = self.kind(kind);
        let mut config = TargetConfig::new();
        config.insert("kind".into(), kind.into());
        for (option, source) in options.unwrap_or_default() {
            let value = match source {
                OptionSource::Fixed(value) => json!(value),
                OptionSource::Number(value) => json!(value),
                OptionSource::Answer(question) => answer(question),
                // The dots are removed: `8.6` becomes `sm_86`.
                OptionSource::Arch => answer("compute_version")
                    .as_str()
                    .map_or(Value::Null, |version| {
                        Value::String(format!("sm_{}", version.replace('.', "")))
                    }),
                OptionSource::Triple => self.machine().triple.clone().into(),
                OptionSource::Cpu => self.machine().cpu.clone().into(),
            };
            // TGT-03: an option that the release's kind does not declare is omitted, because reading would reject it.
            let of = declared.as_ref().and_then(|kind| kind.find(option));
            // TGT-59: upstream states None for a missing answer, which no option accepts. Here the option is omitted.
            if let (false, Some(of)) = (value.is_null(), of) {
                let value = convert_answer(minor, &of.option_type, value);
                config.insert(option.into(), value);
            }
        }
        self.read_config(&config)
    }
}

/// The source of an option's value.
enum OptionSource {
    /// This text.
    Fixed(&'static str),
    /// This number, without asking the driver.
    Number(i64),
    /// The device's answer to this name.
    Answer(&'static str),
    /// The compute version, as an architecture.
    Arch,
    /// LLVM's default triple.
    Triple,
    /// LLVM's name of the processor.
    Cpu,
}

/// Returns the options that a detected target states, or `None` for a type that the release does not detect (TGT-59).
fn detected(minor: u8, name: &str) -> Option<Vec<(&'static str, OptionSource)>> {
    let limits = |shared: OptionSource| {
        vec![
            ("max_shared_memory_per_block", shared),
            (
                "max_threads_per_block",
                OptionSource::Answer("max_threads_per_block"),
            ),
            ("thread_warp_size", OptionSource::Answer("warp_size")),
        ]
    };
    let asked = || limits(OptionSource::Answer("max_shared_memory_per_block"));
    Some(match (name, minor) {
        (_, ..14) => return None,
        ("cuda", _) => [asked(), vec![("arch", OptionSource::Arch)]]
            .into_iter()
            .flatten()
            .collect(),
        // TGT-59: Metal has the attribute per pipeline, not per device. Upstream states the value that all its devices have.
        ("metal", _) => limits(OptionSource::Number(32768)),
        ("rocm", _) => {
            // TGT-59: a typo of 0.14, which its own parser rejects (TGT-52).
            let triple = if minor < 16 {
                "amdgcn-and-amdhsa-hcc"
            } else {
                "amdgcn-amd-amdhsa-hcc"
            };
            [asked(), vec![("mtriple", OptionSource::Fixed(triple))]]
                .into_iter()
                .flatten()
                .collect()
        }
        ("opencl", 16..) => asked(),
        ("vulkan", _) => {
            let names = [
                ("supports_float16", 14),
                ("supports_int8", 14),
                ("supports_int16", 14),
                ("supports_16bit_buffer", 14),
                ("supports_int64", 16),
                ("supports_8bit_buffer", 17),
                ("supports_storage_buffer_storage_class", 17),
            ];
            let names = names.into_iter().filter(|(_, since)| minor >= *since);
            asked()
                .into_iter()
                .chain(names.map(|(name, _)| (name, OptionSource::Answer(name))))
                .collect()
        }
        ("cpu", 16..) => vec![
            ("mtriple", OptionSource::Triple),
            ("mcpu", OptionSource::Cpu),
        ],
        _ => return None,
    })
}

/// Adds the options that `attrs` does not have yet, as device `id` answers them (TGT-58).
pub(super) fn fill(
    targets: &Targets,
    kind: &TargetKind,
    id: i64,
    attrs: &mut TargetConfig,
) -> Result<(), Violation> {
    // TGT-58: a machine without the driver builds with the defaults. Upstream logs that and continues.
    let Some(devices) = targets.machine().devices.get(&kind.device_type) else {
        return Ok(());
    };
    // TGT-58: up to 0.23 a negative number names no device. Later it means that no device is asked, and does not get here.
    let found = usize::try_from(id).ok().and_then(|id| devices.get(id));
    TGT_58.demand(Kind::Missing, found.is_some(), || {
        format!(
            "Requested reading the parameters for {} from device_id {id}, but device_id {id} doesn't exist.  Using default target \
             parameters.",
            kind.name
        )
    })?;
    for option in &kind.options {
        let answer = found.and_then(|answers| answers.get(&option.name));
        let Some(answer) = answer.filter(|answer| !answer.is_null()) else {
            continue;
        };
        // TGT-58: existing values take precedence. These are stated options and, from 0.24 on, the defaults, which are added earlier.
        if attrs.contains_key(&option.name) {
            continue;
        }
        let value = convert_answer(targets.release.minor(), &option.option_type, answer.clone());
        // TGT-58: from 0.21 on upstream checks no type. Here an answer of another type is rejected.
        let fits = match option.option_type {
            OptionType::Int => value.is_i64(),
            // TGT-05: up to 0.17 a bool is a number.
            OptionType::Bool => value.is_boolean() || value.is_i64(),
            OptionType::Str => value.is_string(),
            _ => false,
        };
        TGT_58.demand(Kind::Type, fits, || {
            format!(
                "the device answers {answer} to `{}`, which has another type",
                option.name
            )
        })?;
        attrs.insert(option.name.clone(), value);
    }
    Ok(())
}

/// Returns an answer as an option of this type stores it (TGT-05): drivers answer 1 for true.
fn convert_answer(minor: u8, of: &OptionType, answer: Value) -> Value {
    match (of, &answer) {
        (OptionType::Bool, Value::Number(number)) if minor >= 18 => {
            Value::Bool(number.as_i64() != Some(0))
        }
        (OptionType::Int, Value::Bool(truth)) => i64::from(*truth).into(),
        (OptionType::Bool, Value::Bool(truth)) if minor < 18 => i64::from(*truth).into(),
        _ => answer,
    }
}
