//! Writer of legacy graphs, byte for byte as releases write them (OBJ-31, OBJ-32).

use super::text::{LegacyWriter, is_plain};
use super::{LegacyGraph, LegacyNode};
use crate::object::{OBJ_25, OBJ_31, OBJ_32};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::collections::BTreeMap;

/// Maximum number of node indices on one line.
const ON_ONE_LINE: usize = 10;

impl LegacyGraph {
    /// Returns the text of the graph. Rejects a graph that no release can write (OBJ-31), or that `release` does not know (OBJ-32).
    ///
    /// # Errors
    ///
    /// Returns OBJ-31, OBJ-32 for content that `release` does not know, or OBJ-25 for a text that its form cannot hold.
    pub fn write(&self, release: Option<Release>) -> Result<Vec<u8>, Violation> {
        if let Some(release) = release {
            self.check_supported_by(release)?;
        }
        let mut out = LegacyWriter::default();
        out.object(true);
        out.member("root");
        out.number(self.root);
        out.member("nodes");
        out.array(true);
        for (index, node) in self.nodes.iter().enumerate() {
            out.element();
            node.write(&mut out)
                .map_err(|broken| broken.in_field(format!("nodes[{index}]")))?;
        }
        out.close();
        if let Some(tensors) = &self.tensors {
            out.member("b64ndarrays");
            out.array(true);
            for tensor in tensors {
                out.element();
                out.string(BASE64_STANDARD.encode(tensor).as_bytes());
            }
            out.close();
        }
        // OBJ-31: sorted by name, no matter in which order they were read.
        write_attrs(&self.attrs, &mut out)?;
        out.close();
        Ok(out.into_text())
    }

    /// Checks OBJ-32: `release` knows the members and type keys of the graph.
    fn check_supported_by(&self, release: Release) -> Result<(), Violation> {
        let releases = self.releases();
        let known = releases.is_some_and(|releases| releases.contains(release));
        OBJ_32.demand(Kind::Unsupported, known, || match releases {
            Some(releases) => format!(
                "{release} does not know every member and container of this graph: {} to {} do",
                releases.since, releases.until
            ),
            None => "no release knows every member and container of this graph".to_owned(),
        })?;
        // OBJ-32: from 0.4 on the member exists, even if it is empty. 0.2 and 0.3 do not know it, which the check above finds.
        let tensors = self.tensors.is_some() == (release.minor() >= 4);
        OBJ_32.demand(Kind::Missing, tensors, || {
            format!("a graph of {release} has the member `b64ndarrays`, even empty")
        })
    }
}

impl LegacyNode {
    /// Writes a node, with its members in the order of OBJ-22. Empty members are left out.
    fn write(&self, out: &mut LegacyWriter) -> Result<(), Violation> {
        out.object(true);
        out.member("type_key");
        out.string(self.type_key.as_bytes());
        // OBJ-31: empty members are left out, so that a release finds no member that it does not know.
        if !self.global_key.is_empty() {
            out.member("global_key");
            out.string(&self.global_key);
        }
        if !self.repr.is_empty() {
            OBJ_25.demand(Kind::Malformed, self.attrs.is_empty(), || {
                "a node with a representation has no attributes".to_owned()
            })?;
            // OBJ-25: the bytes decide, not the type. A text with a single other byte is written as bytes.
            if self.repr.iter().all(|byte| is_plain(*byte)) {
                out.member("repr_str");
                out.string(&self.repr);
            } else {
                let mut bytes = (self.repr.len() as u64).to_le_bytes().to_vec();
                bytes.extend_from_slice(&self.repr);
                out.member("repr_b64");
                out.string(BASE64_STANDARD.encode(bytes).as_bytes());
            }
        }
        write_attrs(&self.attrs, out)?;
        if !self.keys.is_empty() {
            out.member("keys");
            out.array(true);
            for key in &self.keys {
                out.element();
                out.string(key);
            }
            out.close();
        }
        if !self.data.is_empty() {
            out.member("data");
            // OBJ-31: up to ten numbers share a line; texts never do.
            out.array(self.data.len() > ON_ONE_LINE);
            for index in &self.data {
                out.element();
                out.number(*index);
            }
            out.close();
        }
        out.close();
        Ok(())
    }
}

/// Writes attributes, which the map sorts by name. Writes nothing if the map is empty.
fn write_attrs(attrs: &BTreeMap<String, Vec<u8>>, out: &mut LegacyWriter) -> Result<(), Violation> {
    if attrs.is_empty() {
        return Ok(());
    }
    out.member("attrs");
    // OBJ-31: a single attribute is on the same line as its brackets.
    out.object(attrs.len() > 1);
    for (name, value) in attrs {
        // The released writer does not escape names, so a name with these characters could not be read back.
        let plain = !name.contains(['"', '\\', '\r', '\n']);
        OBJ_31.demand(Kind::Unsupported, plain, || {
            format!("an attribute named {name:?} cannot be written")
        })?;
        out.member(name);
        out.string(value);
    }
    out.close();
    Ok(())
}
