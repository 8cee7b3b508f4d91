//! Any text as a JSON graph: no panic, no endless nesting, and what is read writes a graph that reads and writes the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tvmspec::object::{self, graph};
use tvmspec::value::AnyView;

fuzz_target!(|data: &[u8]| {
    object::init();
    let Ok(value) = graph::decode_text(data) else { return };
    let Ok(text) = graph::encode_text(value.view(), AnyView::none()) else { return };
    // Some texts say more than their value: `handle6` is a handle, bytes that are not UTF-8 are replaced. Once written, no more.
    let again = graph::decode_text(text.as_bytes()).expect("what was written can be read");
    let twice = graph::encode_text(again.view(), AnyView::none()).expect("what was read can be written");
    assert_eq!(text, twice);
});
