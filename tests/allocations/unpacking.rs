//! Memory of unpacking a library binary: it grows with the number of modules, and payloads are not copied.

use crate::peak_of;
use std::io;
use tvmspec::blob::Blob;
use tvmspec::examine::unpack::unpack;
use tvmspec::import_tree::ImportTree;
use tvmspec::release::Layout;
use tvmspec::rule::Findings;
use tvmspec::wire::Writer;

#[test]
fn a_manifest_of_many_modules_takes_little_more_than_they_do() {
    let count = 20_000;
    let mut body = Writer::new();
    let mut indptr = vec![count - 1; count as usize + 1];
    indptr[0] = 0;
    let indices: Vec<u64> = (1..count).collect();
    let tree = ImportTree::new(&indptr, &indices, &mut Findings::default()).unwrap();
    tree.write(&mut body);
    body.str("_lib");
    for _ in 1..count {
        body.str("own");
        body.str("");
    }
    let body = body.into_bytes();
    let mut out = Writer::new();
    out.bytes(&body);
    let bytes = out.into_bytes();
    let blob = Blob::read(&bytes, Layout::V0_22).unwrap().value;
    let (peak, ()) = peak_of(|| {
        let unpacked = unpack(blob).unwrap();
        assert_eq!(unpacked.files().count(), count as usize - 1);
        serde_json::to_writer(io::sink(), &unpacked).unwrap();
    });
    // A manifest of JSON values would take more than 700 bytes for each module.
    assert!(peak < 300 * count as usize, "{peak}");
}
