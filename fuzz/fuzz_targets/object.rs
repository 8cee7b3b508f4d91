//! Reads any text as a JSON graph of either era. Nothing panics and nesting is bounded. A graph that reads is written, and then reads and
//! writes the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tvmspec::object::json_graph::legacy::LegacyGraph;
use tvmspec::object::{self, graph};
use tvmspec::rule::Findings;
use tvmspec::value::AnyView;

fuzz_target!(|data: &[u8]| {
    object::init();
    legacy(data);
    let Ok(value) = graph::decode_text(data) else { return };
    let Ok(text) = graph::encode_text(value.view(), AnyView::none()) else { return };
    // Some texts lose details when read: `handle6` becomes a handle, and bytes outside UTF-8 are replaced. Written text loses nothing.
    let again = graph::decode_text(text.as_bytes()).expect("a written text can be read");
    let twice = graph::encode_text(again.view(), AnyView::none()).expect("a value that was read can be written");
    assert_eq!(text, twice);
});

fn legacy(data: &[u8]) {
    let Ok(graph) = LegacyGraph::read(data, &mut Findings::default()) else { return };
    // Names that need an escape are read but not written.
    if let Ok(text) = graph.write(None) {
        let again = LegacyGraph::read(&text, &mut Findings::default()).expect("a written text can be read");
        assert_eq!(graph, again);
        assert_eq!(again.write(None).expect("a value that was read can be written"), text);
    }
    let Ok(value) = graph.value() else { return };
    let Ok(graph) = LegacyGraph::from_value(value.view(), tvmspec::object::json_graph::legacy::RELEASES.until) else { return };
    let text = graph.write(None).expect("a value has names that can be written");
    let again = LegacyGraph::read(&text, &mut Findings::default()).expect("a written text can be read");
    assert_eq!(graph, again);
}
