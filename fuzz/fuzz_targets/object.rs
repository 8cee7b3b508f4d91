//! Any text as a JSON graph: no panic, no endless nesting, and what is read writes a graph that reads as the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tvmspec::object::{self, graph, structural};
use tvmspec::value::AnyView;

fuzz_target!(|data: &[u8]| {
    object::init();
    let Ok(value) = graph::decode_text(data) else { return };
    let Ok(text) = graph::encode_text(value.view(), AnyView::none()) else { return };
    let again = graph::decode_text(text.as_bytes()).expect("what was written can be read");
    // Text that is not UTF-8 is written with replacement characters, and is another text then.
    if std::str::from_utf8(data).is_err() {
        return;
    }
    if let Ok(equal) = structural::equal(value.view(), again.view(), false, false) {
        assert!(equal);
    }
});
