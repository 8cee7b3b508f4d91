//! Suggestions for misspelled words.

/// Returns `; near is `blob.decode`` with the known word of the smallest edit distance, if at least half of its letters match.
pub(super) fn suggest_spelling<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // The given word may have any length, and the known ones are short.
    let word: String = word.chars().take(64).collect();
    let distances = known
        .into_iter()
        .map(|known| (distance(&word, known), known));
    match distances.min() {
        Some((changed, known)) if changed <= known.len() / 2 => format!("; near is `{known}`"),
        _ => String::new(),
    }
}

/// Returns the edit distance of two words: changed, omitted and inserted letters.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (place, known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *known);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}
