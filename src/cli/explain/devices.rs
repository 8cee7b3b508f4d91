//! Judgement of a module's code by the devices of this machine. Drivers are queried, but no code of the file is executed.

use tvmspec::device::{Attribute, AttributeValue, Manager, device_type, existing_devices};
use tvmspec::examine::explain::Need;
use tvmspec::payload::CodeNeed;

/// Adds to each module with device code the verdict of the devices of this machine.
pub(super) fn judge(needs: &mut [Need]) {
    for need in needs {
        let mut here: Vec<String> = need.code.iter().filter_map(verdict).collect();
        here.dedup();
        need.here = here;
    }
}

/// Returns the verdict of the devices on one need; `None` if no attribute of a device decides it.
fn verdict(need: &CodeNeed) -> Option<String> {
    let (device, attribute) = match need {
        CodeNeed::PtxTarget(_) | CodeNeed::CudaBinary(_) => ("cuda", Attribute::ComputeVersion),
        CodeNeed::AmdProcessor(_) => ("rocm", Attribute::GcnArch),
        CodeNeed::SpirvVersion(_) => ("vulkan", Attribute::ComputeVersion),
        _ => return None,
    };
    let code = format!("{} {}", need.name(), need.value());
    let devices = match device_answers(device, attribute) {
        Ok(devices) if devices.is_empty() => {
            return Some(format!("{code}: no {device} device is here"));
        }
        Ok(devices) => devices,
        Err(why) => return Some(format!("{code}: no {device} device is here: {why}")),
    };
    let (fit, unfit): (Vec<_>, Vec<_>) = devices
        .into_iter()
        .partition(|(_, has)| accepts_code(need, has));
    let named = |devices: &[(String, String)]| {
        let names = devices.iter().map(|(name, has)| format!("{name} ({has})"));
        names.collect::<Vec<_>>().join(", ")
    };
    Some(match (fit.as_slice(), unfit.as_slice()) {
        ([], unfit) => format!("{code}: NOT ON THIS MACHINE, which has {}", named(unfit)),
        (fit, []) => format!("{code}: runs on {}", named(fit)),
        (fit, unfit) => format!("{code}: runs on {}, not on {}", named(fit), named(unfit)),
    })
}

/// Returns the name of each device of a type, and its answer to `attribute`.
fn device_answers(name: &str, attribute: Attribute) -> Result<Vec<(String, String)>, String> {
    let kind = device_type::number_of(name).ok_or("no release has such a device")?;
    let api = Manager::global()
        .api(kind)
        .map_err(|error| error.reason())?;
    let devices = existing_devices(api, kind).map(|device| {
        let answer = api
            .attribute(device, attribute)
            .unwrap_or(AttributeValue::None);
        (format!("{name}:{}", device.id), answer.to_string())
    });
    Ok(devices.collect())
}

/// Returns whether a device that answers `has` accepts code with this need.
fn accepts_code(need: &CodeNeed, has: &str) -> bool {
    match need {
        // PTX can be compiled for any later device. With a letter after the number, only for that device or its family.
        CodeNeed::PtxTarget(target) => architecture(target).is_some_and(|(number, letter)| {
            let (major, minor) = version(has);
            let device = major * 10 + minor;
            match letter {
                Some('a') => device == number,
                Some('f') => device / 10 == number / 10 && device >= number,
                _ => device >= number,
            }
        }),
        CodeNeed::CudaBinary(target) => architecture(target).is_some_and(|(number, letter)| {
            let (major, minor) = version(has);
            let device = major * 10 + minor;
            match letter {
                Some('a') => device == number,
                _ => device / 10 == number / 10 && device >= number,
            }
        }),
        CodeNeed::AmdProcessor(processor) => has.split(':').next() == Some(processor),
        // The version of Vulkan that introduced each version of SPIR-V.
        CodeNeed::SpirvVersion(wanted) => {
            let vulkan = match version(wanted) {
                (1, 0) => (1, 0),
                (1, ..=3) => (1, 1),
                (1, ..=5) => (1, 2),
                (1, 6) => (1, 3),
                _ => return false,
            };
            version(has) >= vulkan
        }
        _ => true,
    }
}

/// Parses the number and the letter of `sm_90a`.
fn architecture(target: &str) -> Option<(u32, Option<char>)> {
    let name = target.strip_prefix("sm_")?;
    let digits = name.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let letter = name
        .get(digits.len()..)
        .and_then(|rest| rest.chars().next());
    Some((digits.parse().ok()?, letter))
}

/// Parses the first two numbers of `9.0` or `1.3.230`.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
