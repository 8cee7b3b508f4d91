//! Devices as text: `cpu`, `cuda:1` (VAL-13).

use super::VAL_13;
use super::dlpack::DLDevice;
use crate::rule::{Kind, Violation};

/// Names that a text may use, with their device types. The first name of a type is the one that is printed.
const NAMES: [(&str, i32); 30] = [
    ("cpu", 1),
    ("cuda", 2),
    ("cuda_host", 3),
    ("opencl", 4),
    ("vulkan", 7),
    ("metal", 8),
    ("vpi", 9),
    ("rocm", 10),
    ("rocm_host", 11),
    ("ext_dev", 12),
    ("cuda_managed", 13),
    ("oneapi", 14),
    ("webgpu", 15),
    ("hexagon", 16),
    ("maia", 17),
    ("trn", 18),
    // VAL-13, Here: names that TVM's Python accepts.
    ("llvm", 1),
    ("nvptx", 2),
    ("cl", 4),
    ("sdaccel", 4),
    ("c", 1),
    ("stackvm", 1),
    ("hybrid", 1),
    ("composite", 1),
    ("test", 1),
    ("ext", 12),
    ("gpu", 2),
    ("mtl", 8),
    ("mps", 8),
    ("wgpu", 15),
];

/// Parses a device. Without a number, the device number is 0.
///
/// # Errors
///
/// Returns VAL-13 (malformed) for an unknown name, and for a number that is not decimal digits up to 2^31 - 1.
pub fn device_from_text(text: &str) -> Result<DLDevice, Violation> {
    parse(text).ok_or_else(|| {
        VAL_13.rejected(
            Kind::Malformed,
            format!("unknown device `{text}`; write a name, or name:number, such as cuda:1"),
        )
    })
}

fn parse(text: &str) -> Option<DLDevice> {
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
    let &(_, device_type) = NAMES.iter().find(|(known, _)| *known == name)?;
    Some(DLDevice {
        device_type,
        device_id: number,
    })
}

/// Returns `cuda:0` for a known type, otherwise `unknown:0`.
pub fn device_to_text(device: DLDevice) -> String {
    let known = NAMES.iter().find(|(_, known)| *known == device.device_type);
    let name = known.map_or("unknown", |(name, _)| name);
    format!("{name}:{}", device.device_id)
}
