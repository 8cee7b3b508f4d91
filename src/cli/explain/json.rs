//! JSON of accounts, one module's needs at a time, because a file may have a hundred thousand modules.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use tvmspec::examine::explain::{Account, Need};

/// An element of `explain.json`: the same text as [`Account::to_json`], with only one need in memory at a time.
pub(super) struct AccountJson<'a>(pub &'a Account);

impl Serialize for AccountJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frame = self.0.frame();
        let mut map = serializer.serialize_map(Some(frame.len()))?;
        for (name, value) in &frame {
            match name.as_str() {
                "needs" => map.serialize_entry(name, &Needs(&self.0.needs))?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

struct Needs<'a>(&'a [Need]);

impl Serialize for Needs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Need::to_json))
    }
}
