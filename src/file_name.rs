//! File names that are made from the content of a file: names of kernels, formats, kinds of modules.
//!
//! Such a text may contain anything: path separators, control characters, a name that Windows reserves. Every command that names a file
//! after such a text uses [`FileNames`].

use std::collections::HashMap;

/// The length of the longest stem, in bytes. With an extension and a number, a name stays below the 255 bytes that file systems allow.
const LONGEST_STEM: usize = 180;

/// The length of the longest extension, in bytes.
const LONGEST_EXTENSION: usize = 40;

/// Names that Windows reserves for devices, in any case and with any extension.
const RESERVED: [&str; 24] = [
    "aux", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9", "con",
    "lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9", "nul", "prn",
];

/// Unique names for the files of one folder.
///
/// Names that differ only in case count as equal, because some file systems do not distinguish them. A repeated name gets a number:
/// `add.ptx`, `ADD-2.ptx`. The same texts in the same order always give the same names.
///
/// ```
/// use tvmspec::file_name::FileNames;
///
/// let mut names = FileNames::default();
/// assert_eq!(names.add("main_kernel", "metal"), "main_kernel.metal");
/// assert_eq!(names.add("..", "/victim.txt"), "__._victim.txt");
/// assert_eq!(names.add("a/b", "spv"), "a_b.spv");
/// assert_eq!(names.add("A_b", "spv"), "A_b-2.spv");
/// assert_eq!(names.add("nul", "spv"), "_nul.spv");
/// ```
#[derive(Clone, Debug, Default)]
pub struct FileNames {
    /// Every name in lowercase, with the number of its last repetition.
    taken: HashMap<String, u64>,
}

impl FileNames {
    /// Returns a file name made from `stem` and `extension`. It consists of ASCII letters and digits, `.`, `_` and `-`; any other
    /// character becomes `_`.
    ///
    /// The name does not begin or end with `.` or `-`. It is not a name that Windows reserves, and has at most 255 bytes. It differs
    /// from all earlier names, even if case is ignored.
    pub fn add(&mut self, stem: &str, extension: &str) -> String {
        let mut stem = cleaned(stem, LONGEST_STEM);
        let extension = cleaned(extension, LONGEST_EXTENSION);
        if is_reserved(&stem) {
            stem.insert(0, '_');
        }
        let mut name = format!("{stem}.{extension}");
        let key = name.to_ascii_lowercase();
        let mut number = self.taken.get(&key).copied().unwrap_or(1);
        while self.taken.contains_key(&name.to_ascii_lowercase()) {
            number = number.saturating_add(1);
            name = format!("{stem}-{number}.{extension}");
        }
        self.taken.insert(name.to_ascii_lowercase(), 1);
        self.taken.insert(key, number);
        name
    }
}

/// Replaces the characters of `text` that have a meaning to a file system or a shell, and cuts the text to `longest` bytes.
fn cleaned(text: &str, longest: usize) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let plain = text.chars().take(longest);
    let mut name: String = plain
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect();
    // A leading `.` hides a file, a leading `-` makes it an option, and Windows drops a `.` at the end.
    if name.is_empty() {
        return "_".to_owned();
    }
    if name.starts_with(['.', '-']) {
        name.replace_range(..1, "_");
    }
    if name.ends_with(['.', '-']) {
        name.pop();
        name.push('_');
    }
    name
}

/// Returns whether Windows treats a file of this name as a device. It ignores everything after the first dot, and blanks before that
/// dot.
fn is_reserved(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or_default();
    RESERVED
        .iter()
        .any(|reserved| base.trim_end().eq_ignore_ascii_case(reserved))
}

/// Returns whether a file may be called `name` on every system. The name must be a single path component of at most 255 bytes, without
/// control characters, and without anything that Windows reserves.
pub fn is_file_name(name: &str) -> bool {
    let is_letter = |letter: char| !letter.is_control() && !"/\\<>:\"|?*".contains(letter);
    !name.is_empty()
        && name.len() <= 255
        && name.chars().all(is_letter)
        && !name.starts_with(' ')
        && !name.ends_with([' ', '.'])
        && !is_reserved(name)
}
