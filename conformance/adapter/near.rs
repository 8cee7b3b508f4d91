//! The known word that a mistaken one is most likely meant as.

/// `; near is `blob.decode``: the known word that takes the fewest changed letters, where half of them stay.
pub(super) fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // A word may have any length; those that are known are short.
    let word: String = word.chars().take(64).collect();
    let distances = known
        .into_iter()
        .map(|known| (distance(&word, known), known));
    match distances.min() {
        Some((changed, known)) if changed <= known.len() / 2 => format!("; near is `{known}`"),
        _ => String::new(),
    }
}

/// How many letters are changed, left out or put in between two words.
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
