//! Devices as text: `cpu`, `cuda:1` (VAL-13).

use super::VAL_13;
use crate::rule::{Kind, Violation};
use crate::tensor::{DEVICE_NAMES, Device};

/// Further names that a text may use, with their device types (VAL-13, Here): those that TVM's Python accepts.
const ALIASES: [(i32, &str); 14] = [
    (1, "llvm"),
    (2, "nvptx"),
    (4, "cl"),
    (4, "sdaccel"),
    (1, "c"),
    (1, "stackvm"),
    (1, "hybrid"),
    (1, "composite"),
    (1, "test"),
    (12, "ext"),
    (2, "gpu"),
    (8, "mtl"),
    (8, "mps"),
    (15, "wgpu"),
];

/// Parses a device. Without a number, the device number is 0.
///
/// # Errors
///
/// Returns VAL-13 (malformed) for an unknown name, and for a number that is not decimal digits up to 2^31 - 1.
pub fn device_from_text(text: &str) -> Result<Device, Violation> {
    parse(text).ok_or_else(|| {
        VAL_13.rejected(
            Kind::Malformed,
            format!("unknown device `{text}`; write a name, or name:number, such as cuda:1"),
        )
    })
}

fn parse(text: &str) -> Option<Device> {
    let (name, number) = match text.split_once(':') {
        // `parse` accepts a sign, but no release does.
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            // VAL-13: `parse` rejects an empty number and one beyond 2^31 - 1.
            (name, number.parse::<i32>().ok()?)
        }
        Some(_) => return None,
        None => (text, 0),
    };
    // VAL-13: the whole name must match. Releases ignore text after a blank, and read `cuda x` as `cuda`.
    let mut names = DEVICE_NAMES.iter().chain(&ALIASES);
    let &(kind, _) = names.find(|(_, known)| *known == name)?;
    Some(Device { kind, id: number })
}

/// Returns `cuda:0` for a known type, otherwise `unknown:0`.
pub fn device_to_text(device: Device) -> String {
    let name = device.name().unwrap_or("unknown");
    format!("{name}:{}", device.id)
}
