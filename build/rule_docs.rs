//! The constants of the rules and their documentation, and that of the module with the constants of a chapter: the text of the rule, and
//! the tables, productions and operations of the chapter, with links that rustdoc understands.
//!
//! The prose of `spec/` is Markdown for a reader of files. In rustdoc, a link to a file leads nowhere, an indented block is a doctest,
//! and a bracket is a link to an item. Therefore links to chapters become links to modules, and ids of rules links to constants.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The chapters whose modules a build may lack, with the feature that brings each.
const FEATURES: [(&str, &str); 6] = [
    ("value", "RUNTIME"),
    ("function", "RUNTIME"),
    ("module", "RUNTIME"),
    ("device", "RUNTIME"),
    ("target", "TARGET"),
    ("rpc", "RPC"),
];

/// Writes into `folder` the documentation of each rule, the documentation of each chapter, and the constants of each chapter.
pub(crate) fn write(root: &Path, spec: &[String], folder: &Path) {
    fs::create_dir_all(folder).expect("OUT_DIR is writable");
    let chapters: Vec<(&str, String)> = spec
        .iter()
        .filter_map(|file| Some((file.strip_suffix(".md")?, root.join("spec").join(file))))
        .map(|(chapter, path)| {
            let prose = fs::read_to_string(path).expect("listed just now");
            (chapter, prose)
        })
        .collect();
    // A link may lead to a rule of any chapter, so all ids are collected before the first text is written.
    let ids: BTreeMap<&str, &str> = chapters
        .iter()
        .flat_map(|(chapter, prose)| {
            prose
                .lines()
                .filter_map(heading)
                .map(|(id, _)| (id, *chapter))
        })
        .collect();
    for (chapter, prose) in &chapters {
        let own = ids.iter().filter(|(_, of)| *of == chapter);
        let constants = constants(own.map(|(id, _)| *id).collect());
        fs::write(folder.join(format!("{chapter}.rs")), constants).expect("OUT_DIR is writable");
        let links = Links { chapter, ids: &ids };
        let mut lines = prose.lines().peekable();
        while let Some(line) = lines.next() {
            let Some((id, title)) = heading(line) else {
                continue;
            };
            let attributes = lines.next().unwrap_or_default();
            let mut text = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                text.push(line);
            }
            let doc = links.document(id, title, attributes, &text);
            fs::write(folder.join(format!("{}.md", id.replace('-', "_"))), doc)
                .expect("OUT_DIR is writable");
        }
        let beside = links.body("", &text_beside_rules(prose));
        fs::write(folder.join(format!("{chapter}.md")), beside).expect("OUT_DIR is writable");
    }
}

/// Returns the code of the constants for these rules, in the order of their numbers.
fn constants(mut ids: Vec<&str>) -> String {
    ids.sort_by_key(|id| (id.len(), *id));
    let (mut code, mut all) = (String::new(), String::new());
    for id in ids {
        let name = id.replace('-', "_");
        writeln!(code, "#[doc = include_str!(\"{name}.md\")]").expect("strings grow");
        writeln!(
            code,
            "pub const {name}: crate::rule::Rule = crate::rule::Rule::new({id:?});"
        )
        .expect("strings grow");
        write!(all, "{name}, ").expect("strings grow");
    }
    code.push_str("/// Every rule that this chapter enforces, by number.\n");
    writeln!(code, "pub const RULES: &[crate::rule::Rule] = &[{all}];").expect("strings grow");
    code
}

/// Returns the lines of a chapter that belong to no rule, without its title and without headings that nothing follows.
fn text_beside_rules(prose: &str) -> Vec<&str> {
    let (mut lines, mut in_rule, mut fenced) = (Vec::new(), false, false);
    for line in prose.lines().skip(1) {
        fenced ^= line.starts_with("```");
        if !fenced && line.starts_with('#') {
            in_rule = heading(line).is_some();
        }
        if !in_rule && !line.starts_with("<!--") {
            lines.push(line);
        }
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut next = 0;
    for line in lines.into_iter().rev() {
        let depth = line.bytes().take_while(|byte| *byte == b'#').count();
        // At the end, or before a heading that is not below this one, a heading has no text.
        if depth > 0 && depth >= next {
            continue;
        }
        if !line.is_empty() {
            next = if depth > 0 { depth } else { usize::MAX };
        }
        kept.push(line);
    }
    kept.reverse();
    kept
}

/// Splits `### BLOB-07 Title` into id and title.
fn heading(line: &str) -> Option<(&str, &str)> {
    let (id, title) = line.strip_prefix("### ")?.split_once(' ')?;
    is_rule(id, '-').then_some((id, title))
}

/// Returns whether the word names a rule, with this character before the number: `BLOB-07` in texts, `BLOB_07` in code.
pub(crate) fn is_rule(word: &str, separator: char) -> bool {
    word.split_once(separator).is_some_and(|(chapter, number)| {
        chapter.len() > 1
            && chapter.bytes().all(|byte| byte.is_ascii_uppercase())
            && number.len() >= 2
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns whether this build has the module of the chapter, so that a link to it works.
fn is_built(chapter: &str) -> bool {
    FEATURES
        .iter()
        .find(|(gated, _)| *gated == chapter)
        .is_none_or(|(_, feature)| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some())
}

/// The links of one chapter.
struct Links<'a> {
    /// The chapter that the text belongs to.
    chapter: &'a str,
    /// The chapter of each rule id.
    ids: &'a BTreeMap<&'a str, &'a str>,
}

impl Links<'_> {
    /// Returns the documentation of one rule.
    fn document(&self, id: &str, title: &str, attributes: &str, text: &[&str]) -> String {
        let mut doc = format!("{id}: {}.\n\n{}\n\n", inline(title), summary(attributes));
        doc.push_str(&self.body(id, text));
        writeln!(doc, "\nThis is a rule of `spec/{}.md`.", self.chapter).expect("strings grow");
        doc
    }

    /// Returns text as rustdoc reads it. `own` is the rule that it belongs to, which does not become a link.
    fn body(&self, own: &str, text: &[&str]) -> String {
        let mut doc = String::new();
        let mut text = text.iter().map(|line| Cow::Borrowed(*line)).peekable();
        // The block that the last line belongs to.
        let (mut fenced, mut indented, mut blank) = (false, false, true);
        while let Some(mut line) = text.next() {
            if !fenced
                && has_open_bracket(&line)
                && let Some(next) = text.next()
            {
                line = format!("{line} {next}").into();
            }
            if line.starts_with("```") {
                // Without a language, rustdoc would compile the block.
                let open = if fenced { "```" } else { "```text" };
                fenced = !fenced;
                writeln!(doc, "{open}").expect("strings grow");
                continue;
            }
            if fenced {
                writeln!(doc, "{line}").expect("strings grow");
                continue;
            }
            if indented && !line.starts_with("    ") && !line.is_empty() {
                doc.push_str("```\n");
                indented = false;
            }
            if blank && !indented && line.starts_with("    ") {
                doc.push_str("```text\n");
                indented = true;
            }
            blank = line.is_empty();
            if indented {
                writeln!(doc, "{}", line.strip_prefix("    ").unwrap_or(&line))
            } else {
                writeln!(doc, "{}", self.line(own, &line))
            }
            .expect("strings grow");
        }
        if indented {
            doc.push_str("```\n");
        }
        doc
    }

    /// Returns a line of prose with its links, and with its label in bold.
    fn line(&self, own: &str, line: &str) -> String {
        for label in ["Upstream:", "Here:"] {
            if let Some(rest) = line.strip_prefix(label) {
                return format!("**{label}**{}", self.prose(own, rest));
            }
        }
        self.prose(own, line)
    }

    /// Returns prose with its links. Everything between backquotes stays as it is.
    fn prose(&self, own: &str, line: &str) -> String {
        let mut out = String::new();
        for (index, piece) in line.split('`').enumerate() {
            if index > 0 {
                out.push('`');
            }
            if index % 2 == 1 {
                out.push_str(piece);
            } else {
                self.link(own, piece, &mut out);
            }
        }
        // A link whose text has backquotes is in several pieces. No rule has one, and rustdoc would report it.
        out
    }

    /// Appends prose without code: links to chapters, ids as links, and all other brackets escaped.
    fn link(&self, own: &str, prose: &str, out: &mut String) {
        let mut rest = prose;
        while let Some((before, after)) = rest.split_once('[') {
            self.ids(own, before, out);
            match after
                .split_once("](")
                .and_then(|(text, after)| Some((text, after.split_once(')')?)))
            {
                Some((text, (target, after))) if !text.contains(['[', ']']) => {
                    self.target(text, target, out);
                    rest = after;
                }
                _ => {
                    out.push_str("\\[");
                    rest = after;
                }
            }
        }
        self.ids(own, rest, out);
    }

    /// Appends a link to a chapter, to another page, or to a place in either.
    fn target(&self, text: &str, target: &str, out: &mut String) {
        // The place begins with `#`; without one it is empty.
        let (file, place) = target.split_at(target.find('#').unwrap_or(target.len()));
        let is_chapter = |page: &str| self.ids.values().any(|known| *known == page);
        let page = if file.is_empty() {
            Some(self.chapter)
        } else {
            file.strip_suffix(".md")
        };
        match page {
            Some("README") => write!(out, "[{text}](crate::specification{place})"),
            Some(page) if is_chapter(page) && is_built(page) => {
                // A chapter's text is the documentation of the module of its rules; a rule's text is that of its constant.
                let id = place.trim_start_matches('#').to_uppercase();
                if place.is_empty() || self.ids.contains_key(&*id) {
                    write!(out, "[{text}](crate::{page})")
                } else {
                    write!(out, "[{text}](crate::{page}::rules{place})")
                }
            }
            Some(page) if !page.contains('/') && !is_chapter(page) => {
                let page = page.replace('-', "_");
                write!(out, "[{text}](crate::specification::{page}{place})")
            }
            _ => write!(out, "{text} (`spec/{file}`)"),
        }
        .expect("strings grow");
    }

    /// Appends prose without links, in which each id of another rule becomes a link to its constant.
    fn ids(&self, own: &str, prose: &str, out: &mut String) {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let mut rest = prose;
        while let Some(first) = rest.chars().next() {
            let end = rest
                .find(|letter| is_word(letter) != is_word(first))
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            match self.ids.get(word) {
                Some(chapter) if word != own && is_built(chapter) => {
                    let constant = word.replace('-', "_");
                    write!(out, "[{word}](crate::{chapter}::rules::{constant})")
                        .expect("strings grow");
                }
                _ => out.push_str(&word.replace('<', "\\<")),
            }
            rest = after;
        }
    }
}

/// Returns whether a link begins in this line and ends in the next one.
fn has_open_bracket(line: &str) -> bool {
    let prose = line.split('`').step_by(2);
    prose
        .last()
        .is_some_and(|end| end.rfind('[').is_some_and(|at| !end[at..].contains(']')))
}

/// Escapes a title outside of code: rustdoc would take brackets for links, and `<` for HTML.
fn inline(title: &str) -> String {
    let pieces = title.split('`').enumerate();
    let escaped: Vec<String> = pieces
        .map(|(index, piece)| {
            if index % 2 == 1 {
                piece.to_owned()
            } else {
                piece.replace('[', "\\[").replace('<', "\\<")
            }
        })
        .collect();
    escaped.join("`")
}

/// Returns the attributes as a sentence: `level: MUST    who: reader    since: 0.7    kind: malformed`.
fn summary(attributes: &str) -> String {
    let of = |name: &str| {
        attributes
            .split("    ")
            .filter_map(|attribute| attribute.trim().split_once(": "))
            .find(|(attribute, _)| *attribute == name)
            .map(|(_, value)| value)
    };
    let mut sentence = String::new();
    if let Some(level) = of("level") {
        write!(
            sentence,
            "[**{level}**](crate::rule::Level::{})",
            camel(&level.to_lowercase())
        )
        .expect("strings grow");
    }
    if let Some(who) = of("who") {
        write!(sentence, " for {who}").expect("strings grow");
    }
    match (of("since"), of("until")) {
        (Some(since), Some(until)) => write!(sentence, ", in releases {since} to {until}"),
        (Some(since), None) => write!(sentence, ", from release {since} on"),
        _ => Ok(()),
    }
    .expect("strings grow");
    sentence.push('.');
    if let Some(kinds) = of("kind") {
        let kinds: Vec<String> = kinds
            .split(", ")
            .map(|kind| format!("[`{kind}`](crate::rule::Kind::{})", camel(kind)))
            .collect();
        write!(sentence, " Class of a violation: {}.", kinds.join(", ")).expect("strings grow");
    }
    sentence
}

/// `unknown-kind` as the name of a variant: `UnknownKind`.
fn camel(words: &str) -> String {
    words
        .split('-')
        .map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        })
        .collect()
}
