//! The parser of productions.

use super::{At, Atom, Item, Kind, Literal, Production, Relation, Sum};

/// Gives a single unnamed value of a plain type the name that its position implies.
fn named(mut part: Vec<Item>, fallback: Option<String>) -> Vec<Item> {
    if let [
        Item::Field {
            name: name @ None,
            kind,
            ..
        },
    ] = part.as_mut_slice()
        && !matches!(kind, Kind::Name(..) | Kind::Payload(_))
    {
        *name = fallback;
    }
    part
}

pub(crate) struct Parser<'t> {
    pub(crate) rest: &'t str,
    pub(crate) whole: &'t str,
}

impl Parser<'_> {
    pub(crate) fn production(text: &str, is_kind: bool) -> Production {
        let mut parser = Parser {
            rest: text,
            whole: text,
        };
        let name = parser.name();
        let releases = if parser.joins("@") {
            parser.releases()
        } else {
            (2, 27)
        };
        parser.needs("::=");
        let mut alternatives = vec![parser.items()];
        while parser.takes("|") {
            alternatives.push(parser.items());
        }
        parser.expect_end();
        Production {
            name,
            releases,
            is_kind,
            alternatives,
            text: text.trim_end().to_owned(),
        }
    }

    fn releases(&mut self) -> (u8, u8) {
        let since = self.release();
        self.needs("..");
        let until = if self.rest.starts_with("0.") {
            self.release()
        } else {
            27
        };
        (since, until)
    }

    fn release(&mut self) -> u8 {
        self.needs("0.");
        let digits = self.run(|letter| letter.is_ascii_digit());
        digits.parse().unwrap_or_else(|_| self.fail("a release"))
    }

    pub(crate) fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            self.blanks();
            if self.rest.is_empty() || self.rest.starts_with(['|', '>', ')', ',']) {
                return items;
            }
            items.push(self.item());
        }
    }

    fn item(&mut self) -> Item {
        if self.takes("{") {
            let left = self.sum();
            let relation = if self.takes(">") {
                Relation::Greater
            } else {
                self.needs("=");
                Relation::Equal
            };
            let right = self.sum();
            self.needs("}");
            return Item::Guard(left, relation, right);
        }
        let mut name = None;
        if self
            .rest
            .starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        {
            let word = self.name();
            if !self.joins(":") {
                let kind = self.kind_named(word);
                let kind = self.times(kind);
                return Item::Field {
                    name,
                    kind,
                    is: None,
                };
            }
            name = Some(word);
        }
        let kind = self.kind();
        let is = self.joins("=").then(|| self.literal());
        Item::Field { name, kind, is }
    }

    fn kind(&mut self) -> Kind {
        let kind = if self.takes("(") {
            let items = self.items();
            self.needs(")");
            Kind::Group(items)
        } else {
            let word = self.name();
            self.kind_named(word)
        };
        self.times(kind)
    }

    fn kind_named(&mut self, word: String) -> Kind {
        const PLAIN: [&str; 15] = [
            "u8", "u16", "u32", "u64", "i32", "i64", "f64", "bool", "string", "bytes", "word",
            "digits", "decimal", "base64", "release",
        ];
        match word.as_str() {
            "vector" | "map" | "window" | "tuple" => {
                self.needs("<");
                let mut parts = vec![self.items()];
                while self.takes(",") {
                    parts.push(self.items());
                }
                self.needs(">");
                // Names for parts that have none.
                let names = (0..parts.len()).map(|index| match (word.as_str(), index) {
                    ("map", 0) => Some("key".to_owned()),
                    ("map", _) => Some("item".to_owned()),
                    ("tuple", index) => Some(format!("[{index}]")),
                    _ => None,
                });
                let items = parts
                    .into_iter()
                    .zip(names)
                    .flat_map(|(part, name)| named(part, name));
                let items = items.collect();
                match word.as_str() {
                    "window" => Kind::Window(items),
                    "tuple" => Kind::Group(items),
                    _ => Kind::Vector(items),
                }
            }
            "payload" => {
                self.needs("<");
                let field = self.name();
                self.needs(">");
                Kind::Payload(field)
            }
            "raw" => {
                self.needs("[");
                let length = self.sum();
                self.needs("]");
                Kind::Raw(length)
            }
            plain if PLAIN.contains(&plain) => Kind::Plain(word),
            _ => {
                let at = match self.joins("@") {
                    false => At::Here,
                    true if self.rest.starts_with("0.") => At::Release(self.release()),
                    true => At::Field(self.name()),
                };
                Kind::Name(word, at)
            }
        }
    }

    fn times(&mut self, kind: Kind) -> Kind {
        if !self.joins("[") {
            return kind;
        }
        let count = self.sum();
        self.needs("]");
        Kind::Times(Box::new(kind), count)
    }

    fn literal(&mut self) -> Literal {
        self.blanks();
        if self.takes("\"") {
            let text = self.run(|letter| letter != '"').to_owned();
            self.needs("\"");
            return Literal::Text(text);
        }
        Literal::Number(self.number())
    }

    fn number(&mut self) -> i128 {
        self.blanks();
        if self.takes("0x") {
            let digits = self.run(|letter| letter.is_ascii_hexdigit());
            return i128::from_str_radix(digits, 16).unwrap_or_else(|_| self.fail("a number"));
        }
        let digits = self.run(|letter| letter.is_ascii_digit() || letter == '-');
        digits.parse().unwrap_or_else(|_| self.fail("a number"))
    }

    fn sum(&mut self) -> Sum {
        let mut terms = vec![(true, self.term())];
        loop {
            if self.takes("+") {
                terms.push((true, self.term()));
            } else if self.takes("-") {
                terms.push((false, self.term()));
            } else {
                return Sum(terms);
            }
        }
    }

    fn term(&mut self) -> Vec<(bool, Atom)> {
        let mut atoms = vec![(true, self.atom())];
        loop {
            if self.takes("*") {
                atoms.push((true, self.atom()));
            } else if self.takes("/") {
                atoms.push((false, self.atom()));
            } else {
                return atoms;
            }
        }
    }

    fn atom(&mut self) -> Atom {
        if self.takes("(") {
            let inner = self.sum();
            self.needs(")");
            return Atom::Inner(inner);
        }
        if self.takes("#") {
            return Atom::Count(self.name());
        }
        self.blanks();
        if self
            .rest
            .starts_with(|letter: char| letter.is_ascii_digit())
        {
            return Atom::Number(self.number());
        }
        let word = self.name();
        if word == "product" && self.takes("(") {
            let field = self.name();
            self.needs(")");
            return Atom::Product(field);
        }
        Atom::Field(word)
    }

    /// Parses a name, with the dots and hyphens of names of kinds.
    fn name(&mut self) -> String {
        self.blanks();
        let inside = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
        let name = self.run(inside).to_owned();
        if name.is_empty() {
            self.fail("a name")
        } else {
            name
        }
    }

    fn run(&mut self, wanted: impl Fn(char) -> bool) -> &str {
        let end = self.rest.find(|letter| !wanted(letter));
        let (run, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        run
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Skips blanks, and then `sign` if it is next.
    fn takes(&mut self, sign: &str) -> bool {
        self.blanks();
        self.joins(sign)
    }

    /// Skips `sign` if it is next, without blanks before it.
    fn joins(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(behind) => {
                self.rest = behind;
                true
            }
            None => false,
        }
    }

    fn needs(&mut self, sign: &str) {
        if !self.takes(sign) {
            self.fail(&format!("`{sign}`"))
        }
    }

    pub(crate) fn expect_end(&mut self) {
        self.blanks();
        if !self.rest.is_empty() {
            self.fail("the end")
        }
    }

    fn fail<T>(&self, wanted: &str) -> T {
        let (rest, whole) = (self.rest, self.whole);
        panic!("the grammar lacks {wanted} at `{rest}` in `{whole}`")
    }
}
