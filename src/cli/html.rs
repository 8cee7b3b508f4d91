//! The common parts of pages: escaped texts, the style, and the views of `web/page` as one script.

use super::output::escape_text;
use crate::conformance::sanitized_text::joined_modules;

/// Colours and shapes, also of the page of `web/` and of the site.
pub(crate) const STYLE: &str = include_str!("../../web/style.css");

/// The shapes of the views.
pub(crate) const VIEW_STYLE: &str = include_str!("../../web/page.css");

/// The layout of drawings: dagre, as `web/vendor/update` fetched it.
pub(crate) const LAYOUT: &str = include_str!("../../web/vendor/dagre.min.js");

/// The modules of the views, each after those that it imports; the last one shows the data of the page.
const MODULES: [&str; 18] = [
    include_str!("../../web/page/dom.js"),
    include_str!("../../web/page/model.js"),
    include_str!("../../web/page/rules.js"),
    include_str!("../../web/page/bytes.js"),
    include_str!("../../web/page/layout.js"),
    include_str!("../../web/page/drawing.js"),
    include_str!("../../web/page/highlight.js"),
    include_str!("../../web/page/modules.js"),
    include_str!("../../web/page/graph.js"),
    include_str!("../../web/page/releases.js"),
    include_str!("../../web/page/problems.js"),
    include_str!("../../web/page/histogram.js"),
    include_str!("../../web/page/tensors.js"),
    include_str!("../../web/page/connection.js"),
    include_str!("../../web/page/objects.js"),
    include_str!("../../web/page/parts.js"),
    include_str!("../../web/page/app.js"),
    include_str!("../../web/page/report.js"),
];

/// Returns the views as one script, in a function, so that no name meets one of the browser.
pub(crate) fn views() -> String {
    format!(
        "(() => {{\n\"use strict\";\n{}}})();",
        joined_modules(&MODULES)
    )
}

/// Escapes text for HTML content and quoted attributes. A name in a file must not become markup, and must not hide or reverse the text
/// next to it.
pub(crate) fn escape(text: &str) -> String {
    // The ampersand is replaced first. Otherwise it would escape the output of the other replacements.
    escape_text(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
