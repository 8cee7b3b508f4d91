//! Devices: a type number and an index, and what the numbers are called.

use super::{TEN_10, TEN_11, TEN_12};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, Writer, show};

/// A device as DLPack and TVM store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// The device type: 1 is the CPU, 2 CUDA, 4 OpenCL, ... With a session mask, see [`Device::session`].
    pub kind: i32,
    /// Which device of that type.
    pub id: i32,
}

/// One line of the table in TEN-11: number, name, first and last release.
const NAMES: &[(i32, &str, u8, u8)] = &[
    (1, "cpu", 2, 27),
    (2, "gpu", 2, 7),
    (2, "cuda", 8, 27),
    (3, "cpu_pinned", 7, 7),
    (3, "cuda_host", 8, 27),
    (4, "opencl", 2, 27),
    (5, "aocl", 4, 10),
    (6, "sdaccel", 4, 10),
    (7, "vulkan", 3, 27),
    (8, "metal", 2, 27),
    (9, "vpi", 2, 27),
    (10, "rocm", 2, 27),
    (11, "opengl", 2, 6),
    (11, "rocm_host", 11, 27),
    (12, "ext_dev", 2, 27),
    (13, "micro_dev", 6, 7),
    (13, "cuda_managed", 11, 27),
    (14, "hexagon", 7, 10),
    (14, "oneapi", 11, 27),
    (15, "webgpu", 7, 27),
    (16, "hexagon", 11, 27),
    (18, "trn", 25, 27),
    (32, "aocl", 11, 19),
    (33, "sdaccel", 11, 19),
    (34, "opengl", 11, 19),
    (35, "microdev", 11, 19),
];

impl Device {
    /// The type number of the CPU, in every release.
    pub const CPU_KIND: i32 = 1;

    /// The CPU, where every stored tensor lives.
    pub const CPU: Device = Device {
        kind: Device::CPU_KIND,
        id: 0,
    };

    /// What a session is worth in a device type (TEN-12).
    pub const SESSION_MASK: i32 = 128;

    /// Reads both numbers (TEN-10).
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Device, Violation> {
        cursor.within("device", None, |cursor| {
            Ok(Device {
                kind: cursor.i32("type", TEN_10)?,
                id: cursor.i32("id", TEN_10)?,
            })
        })
    }

    /// Writes both numbers.
    pub fn write(&self, out: &mut Writer) {
        out.i32(self.kind);
        out.i32(self.id);
    }

    /// The name of a device type in `release` (TEN-11): the end of the global function `device_api.<name>`.
    pub fn kind_name(kind: i32, release: Release) -> Result<&'static str, Violation> {
        let named = NAMES.iter().find(|(number, _, since, until)| {
            *number == kind && (*since..=*until).contains(&release.minor())
        });
        named.map(|(_, name, ..)| *name).ok_or_else(|| {
            TEN_11.refused(
                Kind::UnknownKind,
                format!("TVM {release} has no name for device type {kind}"),
            )
        })
    }

    /// The number of the device type that `release` calls `name` (TEN-11).
    pub fn kind_number(name: &str, release: Release) -> Result<i32, Violation> {
        let numbered = NAMES.iter().find(|(_, known, since, until)| {
            *known == name && (*since..=*until).contains(&release.minor())
        });
        numbered.map(|(number, ..)| *number).ok_or_else(|| {
            let name = show(name.as_bytes());
            TEN_11.refused(
                Kind::UnknownKind,
                format!("TVM {release} has no device type `{name}`"),
            )
        })
    }

    /// The remote session that the device type names (TEN-12); `None` for a device of this process.
    pub fn session(&self) -> Option<i32> {
        let mask = self.kind.checked_div(Device::SESSION_MASK).unwrap_or(0);
        if mask <= 0 || TEN_12.is_off() {
            return None;
        }
        mask.checked_sub(1)
    }

    /// The same device inside its session: without the mask.
    #[must_use]
    pub fn without_session(self) -> Device {
        match self.session() {
            Some(_) => Device {
                kind: self
                    .kind
                    .checked_rem(Device::SESSION_MASK)
                    .unwrap_or(self.kind),
                ..self
            },
            None => self,
        }
    }

    /// The same device as seen from outside session `session` (TEN-12).
    pub fn in_session(self, session: i32) -> Result<Device, Violation> {
        if let Some(already) = self.session() {
            let message = format!("the device is already in session {already}");
            return Err(TEN_12.refused(Kind::Type, message));
        }
        let mask = session
            .checked_add(1)
            .filter(|mask| *mask > 0 && self.kind >= 0)
            .and_then(|mask| mask.checked_mul(Device::SESSION_MASK))
            .and_then(|mask| mask.checked_add(self.kind));
        match mask {
            Some(kind) => Ok(Device { kind, ..self }),
            None => {
                let message = format!(
                    "session {session} does not fit beside device type {}",
                    self.kind
                );
                Err(TEN_12.refused(Kind::Limit, message))
            }
        }
    }

    /// The device as `release` prints it (TEN-11, TEN-12): `cuda(0)` up to 0.13, `cuda:0` later, `remote[1]-` in front of it.
    pub fn text(&self, release: Release) -> Result<String, Violation> {
        let local = self.without_session();
        let name = Device::kind_name(local.kind, release)?;
        let id = local.id;
        let local = if release.minor() <= 13 {
            format!("{name}({id})")
        } else {
            format!("{name}:{id}")
        };
        Ok(match self.session() {
            Some(session) => format!("remote[{session}]-{local}"),
            None => local,
        })
    }
}
