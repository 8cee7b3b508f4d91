//! Universal claims: sentences about all releases, which a single counterexample makes false.

use tvmspec::spec::RuleText;

/// Words that make a sentence of `Upstream:` universal.
const UNIVERSAL: [&str; 15] = [
    "all",
    "always",
    "any",
    "anything",
    "anywhere",
    "both",
    "every",
    "everything",
    "everywhere",
    "never",
    "nobody",
    "none",
    "nothing",
    "nowhere",
    "only",
];

/// Nouns that `no` makes universal: the parties that rules are about.
const PARTIES: [&str; 21] = [
    "backend",
    "build",
    "client",
    "compiler",
    "executor",
    "executors",
    "frontend",
    "generator",
    "loader",
    "loaders",
    "reader",
    "readers",
    "release",
    "releases",
    "runtime",
    "runtimes",
    "server",
    "tracker",
    "versions",
    "writer",
    "writers",
];

/// Returns the sentences of a rule about all releases. In `Upstream:` these are sentences with a universal word. Elsewhere they contain
/// `every release`, `no release` or `all releases`, or mention `released` readers, runtimes and so on.
pub(crate) fn universal(rule: &RuleText) -> Vec<String> {
    let upstream = sentences(rule.upstream()).into_iter();
    let mut found: Vec<String> = upstream.filter(|text| is_universal(text)).collect();
    for text in [rule.title.as_str(), rule.norm(), rule.decisions()] {
        let obliging = sentences(text).into_iter();
        found.extend(obliging.filter(|text| speaks_of_releases(text)));
    }
    found
}

/// Returns whether `sentence` contains the words, with any line breaks between them.
pub(crate) fn has_words(sentence: &str, words: &str) -> bool {
    let words: Vec<&str> = words.split_whitespace().collect();
    sentence.contains(&words.join(" "))
}

/// Splits a text into sentences, with one blank between words. A colon and a semicolon also end a sentence.
fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut sentence = String::new();
        for word in paragraph.split_whitespace() {
            if !sentence.is_empty() {
                sentence.push(' ');
            }
            sentence.push_str(word);
            let end = word.strip_suffix(')').unwrap_or(word);
            if end.ends_with(['.', ';', ':', '!', '?']) && !end.ends_with("..") {
                found.push(std::mem::take(&mut sentence));
            }
        }
        if !sentence.is_empty() {
            found.push(sentence);
        }
    }
    found
}

/// Returns the words of a sentence without punctuation. Text between backticks is a name or a message, and makes no claim.
fn words(sentence: &str) -> Vec<&str> {
    let prose = sentence.split('`').step_by(2);
    let words = prose.flat_map(str::split_whitespace);
    let bare = words.map(|word| word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric()));
    bare.filter(|word| !word.is_empty()).collect()
}

fn is_universal(sentence: &str) -> bool {
    let words = words(sentence);
    words.iter().enumerate().any(|(at, &word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        match word.to_lowercase().as_str() {
            // The idiom, not a quantity.
            "all" if before == "at" => false,
            // `None` alone is the value.
            "none" => word == "none" || next == "of",
            "no" => {
                let after = words.get(at + 2).copied().unwrap_or_default();
                PARTIES.contains(&next)
                    || (["other", "released"].contains(&next) && PARTIES.contains(&after))
            }
            word => UNIVERSAL.contains(&word),
        }
    })
}

fn speaks_of_releases(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let words = words(&lower);
    words.iter().enumerate().any(|(at, word)| {
        let mut next = words.iter().skip(at + 1);
        match *word {
            "all" | "every" | "no" => {
                let mut next = next.take(2);
                next.any(|next| ["release", "releases"].contains(next))
            }
            "released" => next.next().is_some_and(|next| PARTIES.contains(next)),
            _ => false,
        }
    })
}

#[test]
fn universal_words_are_told_from_others() {
    for (sentence, universal) in [
        ("No reader checks.", true),
        ("no released writer checks;", true),
        ("`get_output` never compares the dtype", true),
        ("None of them checks.", true),
        ("It stores None, and reads read-only memory.", false),
        ("It is not there at all.", false),
        ("a message `only in a compiler` is shown", false),
        ("there is no colon behind it", false),
    ] {
        assert_eq!(is_universal(sentence), universal, "{sentence}");
    }
    assert!(speaks_of_releases("Every release rejects another."));
    assert!(speaks_of_releases("no released executor has those"));
    assert!(!speaks_of_releases("Every byte is read by a release."));
    assert!(!speaks_of_releases("what it holds is released by it"));
    assert_eq!(sentences("One. Two;\nthree (0.2..) is\none.").len(), 3);
    assert!(has_words("as every release\u{20}does", "every\n release"));
}
