//! An independent reader for GRF-01 to GRF-24 and GRF-51 to GRF-53, on a JSON value that keeps every member.

use super::Odd;
use tvmspec::rule::Kind;

enum Json {
    Other,
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// The comparable parts of a graph: the outputs of each node, and the size of each pool.
pub struct Graph {
    pub outputs: Vec<usize>,
    /// `None` if a pool has no size or no single device.
    pub pools: Option<Vec<u64>>,
    /// `true` if this reading knows every word of the graph exactly.
    pub sure: bool,
}

/// Reads a graph. Returns `Err` if the text nests too deeply for this parser.
pub fn read(text: &str, odd: &mut Odd) -> Result<Option<Graph>, TooDeep> {
    let mut parser = Parser { rest: text, depth: 0, sure: true };
    let whole = parser.value()?.filter(|_| parser.peek().is_none());
    let sure = parser.sure;
    Ok(whole.and_then(|value| graph(&value, odd)).map(|graph| Graph { sure: graph.sure && sure, ..graph }))
}

pub struct TooDeep;

/// Returns GRF-01, GRF-02 or GRF-04 if it is the first broken rule. Also returns the expected kind if the rule allows several.
pub fn blame(text: &str) -> Option<(&'static str, Option<Kind>)> {
    let mut parser = Parser { rest: text, depth: 0, sure: true };
    let whole = parser.value().ok()?.filter(|_| parser.peek().is_none() && parser.sure)?;
    let Some(members) = whole.members() else { return Some(("GRF-01", None)) };
    let before: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).take_while(|key| *key != "metadata").collect();
    let missing = TOP.iter().any(|name| !before.contains(name));
    if !before.iter().all(|key| TOP.contains(key)) {
        return None;
    }
    if missing {
        return Some(("GRF-02", None));
    }
    // A node that is not an object is reported before any missing member.
    let nodes = last(&members[..before.len()], "nodes")?.list()?;
    let first = nodes.iter().find(|item| node(item, &mut Odd::new()).is_none())?;
    first.members().is_none().then_some(("GRF-04", Some(Kind::Malformed)))
}

const TOP: [&str; 5] = ["nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"];

struct Parser<'t> {
    rest: &'t str,
    depth: u32,
    sure: bool,
}

type Parsed<T> = Result<Option<T>, TooDeep>;

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
        self.rest.chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let is = self.peek() == Some(wanted);
        if is {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        is
    }

    fn value(&mut self) -> Parsed<Json> {
        self.depth += 1;
        if self.depth > 200 {
            return Err(TooDeep);
        }
        let value = match self.peek() {
            Some('{') => self.object()?,
            Some('[') => self.list()?,
            Some('"') => self.text().map(Json::Text),
            Some('-' | '0'..='9') => self.number(),
            _ => ["true", "false", "null"].iter().find_map(|word| {
                self.rest = self.rest.strip_prefix(word)?;
                Some(Json::Other)
            }),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn list(&mut self) -> Parsed<Json> {
        self.eat('[');
        let mut items = Vec::new();
        if self.eat(']') {
            return Ok(Some(Json::List(items)));
        }
        loop {
            let Some(item) = self.value()? else { return Ok(None) };
            items.push(item);
            match (self.eat(','), self.eat(']')) {
                (true, false) => {}
                (false, true) => return Ok(Some(Json::List(items))),
                _ => return Ok(None),
            }
        }
    }

    fn object(&mut self) -> Parsed<Json> {
        self.eat('{');
        let mut members = Vec::new();
        if self.eat('}') {
            return Ok(Some(Json::Object(members)));
        }
        loop {
            if self.peek() != Some('"') {
                return Ok(None);
            }
            let Some(key) = self.text().filter(|_| self.eat(':')) else { return Ok(None) };
            let Some(value) = self.value()? else { return Ok(None) };
            members.push((key, value));
            match (self.eat(','), self.eat('}')) {
                (true, false) => {}
                (false, true) => return Ok(Some(Json::Object(members))),
                _ => return Ok(None),
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut high = None;
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            let plain = match char {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return high.is_none().then_some(text);
                }
                '\\' => match chars.next()?.1 {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    quoted @ ('"' | '\\' | '/') => quoted,
                    'u' => {
                        let digits: String = chars.by_ref().take(4).map(|(_, digit)| digit).collect();
                        let digits = Some(digits).filter(|digits| digits.len() == 4 && !digits.starts_with('+'))?;
                        let unit = u32::from_str_radix(&digits, 16).ok()?;
                        match (high.take(), unit) {
                            (None, 0xD800..=0xDBFF) => {
                                high = Some(unit);
                                continue;
                            }
                            (Some(first), 0xDC00..=0xDFFF) => {
                                char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (unit - 0xDC00))?
                            }
                            (None, unit) => char::from_u32(unit)?,
                            _ => return None,
                        }
                    }
                    _ => return None,
                },
                '\0'..='\u{1f}' => return None,
                char => char,
            };
            if high.is_some() {
                return None;
            }
            text.push(plain);
        }
        None
    }

    fn number(&mut self) -> Option<Json> {
        let end = self.rest.find(|char: char| !matches!(char, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        let digits = token.strip_prefix('-').unwrap_or(token);
        let zeros = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        if zeros || token.starts_with('+') {
            return None;
        }
        if let Ok(number) = token.parse::<i64>() {
            // The rules do not state whether `-0` is a valid index.
            self.sure &= token != "-0";
            return Some(Json::Number(number));
        }
        self.sure = false;
        token.parse::<f64>().ok().map(|_| Json::Other)
    }
}

impl Json {
    fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    fn list(&self) -> Option<&[Json]> {
        match self {
            Json::List(items) => Some(items),
            _ => None,
        }
    }

    fn members(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    fn from_zero(&self) -> Option<usize> {
        match self {
            Json::Number(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    fn indices(&self) -> Option<Vec<usize>> {
        self.list()?.iter().map(Json::from_zero).collect()
    }

    fn texts(&self) -> Option<Vec<&str>> {
        self.list()?.iter().map(Json::text).collect()
    }
}

/// Returns the last member of this name. A repeated name also breaks GRF-20.
fn last<'j>(members: &'j [(String, Json)], name: &str) -> Option<&'j Json> {
    members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn once<'m>(keys: impl Iterator<Item = &'m str>, odd: &mut Odd) {
    let mut seen = Vec::new();
    for key in keys {
        if seen.contains(&key) {
            odd.insert("GRF-20".into());
        }
        seen.push(key);
    }
}

struct Node {
    inputs: Vec<Vec<usize>>,
    /// `None` for an input.
    outputs: Option<usize>,
}

fn graph(whole: &Json, odd: &mut Odd) -> Option<Graph> {
    let members = whole.members()?;
    let end = members.iter().position(|(key, _)| key == "metadata").unwrap_or(members.len());
    let members = &members[..end];
    once(members.iter().map(|(key, _)| key.as_str()), odd);
    if members.iter().any(|(key, _)| !TOP.contains(&key.as_str())) {
        return None;
    }
    let nodes: Vec<Node> = last(members, "nodes")?.list()?.iter().map(|item| node(item, odd)).collect::<Option<_>>()?;
    let outputs: Vec<usize> = nodes.iter().map(|node| node.outputs.unwrap_or(1)).collect();
    // GRF-12.
    let rows = last(members, "node_row_ptr")?.indices()?;
    let mut expected = vec![0_usize];
    for count in &outputs {
        expected.push(expected.last()?.checked_add(*count)?);
    }
    if rows != expected {
        return None;
    }
    let exists = |entry: &[usize]| matches!(entry, [node, output, ..] if outputs.get(*node).is_some_and(|count| output < count));
    for (at, node) in nodes.iter().enumerate() {
        if !node.inputs.iter().all(|entry| exists(entry) && entry[0] < at) {
            return None;
        }
    }
    if !entries(last(members, "heads")?)?.iter().all(|entry| exists(entry)) {
        return None;
    }
    let inputs = last(members, "arg_nodes")?.indices()?;
    if !inputs.iter().all(|at| nodes.get(*at).is_some_and(|node| node.outputs.is_none())) {
        return None;
    }
    let count = *rows.last()?;
    let (pools, sure) = attributes(last(members, "attrs")?, count, odd)?;
    Some(Graph { outputs, pools, sure })
}

/// Checks GRF-08.
fn entries(list: &Json) -> Option<Vec<Vec<usize>>> {
    list.list()?.iter().map(|entry| entry.indices().filter(|entry| (2..=3).contains(&entry.len()))).collect()
}

fn node(item: &Json, odd: &mut Odd) -> Option<Node> {
    let members = item.members()?;
    once(members.iter().map(|(key, _)| if key == "attr" { "attrs" } else { key }), odd);
    for (key, value) in members {
        match key.as_str() {
            "op" | "name" => drop(value.text()?),
            "inputs" => drop(entries(value)?),
            "attr" | "attrs" => {}
            "control_deps" => drop(value.indices()?),
            _ => return None,
        }
    }
    last(members, "name")?;
    let inputs = entries(last(members, "inputs")?)?;
    let outputs = match last(members, "op")?.text()? {
        "null" => None,
        "tvm_op" => {
            let attrs = members.iter().rev().find(|(key, _)| key == "attr" || key == "attrs")?.1.members()?;
            once(attrs.iter().map(|(key, _)| key.as_str()), odd);
            for (_, value) in attrs {
                value.text()?;
            }
            last(attrs, "func_name")?;
            let number = |name| {
                let text = last(attrs, name)?.text()?;
                text.parse::<usize>().ok().filter(|_| !text.starts_with('+'))
            };
            number("num_inputs").and(number("flatten_data"))?;
            Some(number("num_outputs")?)
        }
        _ => return None,
    };
    Some(Node { inputs, outputs })
}

/// Checks GRF-13 to GRF-24 and GRF-51 to GRF-53. Returns the bytes of each pool, and whether every type is a simple one.
fn attributes(attrs: &Json, count: usize, odd: &mut Odd) -> Option<(Option<Vec<u64>>, bool)> {
    let members = attrs.members()?;
    once(members.iter().map(|(key, _)| key.as_str()), odd);
    for (key, value) in members {
        let [tag, list] = value.list()? else { return None };
        let wanted = match key.as_str() {
            "dltype" | "storage_scope" => "list_str",
            "storage_id" | "device_index" => "list_int",
            "shape" => "list_shape",
            _ => {
                odd.insert("GRF-21".into());
                if !["list_int", "size_t"].contains(&tag.text()?) {
                    return None;
                }
                continue;
            }
        };
        if tag.text()? != wanted || list.list()?.len() != count {
            return None;
        }
    }
    let value = |name| last(members, name)?.list()?.get(1);
    let names = value("dltype")?.texts()?;
    let sure = names.iter().all(|name| ["float32", "int32", "int64", "int8", "uint8", "float16", "float64"].contains(name));
    let types: Vec<u64> = names.iter().copied().map(element_bytes).collect::<Option<_>>()?;
    let shapes: Vec<Vec<usize>> = value("shape")?.list()?.iter().map(Json::indices).collect::<Option<_>>()?;
    let ids = value("storage_id")?.indices()?;
    let devices = value("device_index").and_then(Json::list);
    let scopes = match value("storage_scope") {
        Some(scopes) => scopes.texts()?,
        None => vec![""; count],
    };
    let mut images = vec![None; ids.iter().max().map_or(0, |most| most + 1).min(count + 1)];
    let mut pools = vec![0_u64; ids.iter().max().map_or(0, |most| most + 1).min(count + 1)];
    let mut place = vec![None; pools.len()];
    let mut planned = true;
    for at in 0..count {
        if ids[at] >= count {
            return None;
        }
        let own = scopes[at].contains("texture").then(|| (image(scopes[at], &shapes[at]), names[at]));
        match images[ids[at]].get_or_insert(own) {
            // GRF-53: the largest height and width, for equal texels.
            Some((Some(all), name)) => match own {
                Some((Some(own), own_name)) if (all[2], *name) == (own[2], own_name) => {
                    *all = [all[0].max(own[0]), all[1].max(own[1]), all[2]];
                    let bytes = match all.iter().any(|extent| *extent == 0) {
                        true => Some(0),
                        false => all.iter().try_fold(types[at], |bytes, extent| bytes.checked_mul(*extent)),
                    };
                    planned &= bytes.is_some();
                    pools[ids[at]] = bytes.unwrap_or_default();
                }
                _ => planned = false,
            },
            Some((None, _)) => planned = false,
            None => {
                let bytes = match shapes[at].iter().any(|extent| *extent == 0) {
                    true => Some(0),
                    false => shapes[at].iter().try_fold(types[at], |all, extent| all.checked_mul(*extent as u64)),
                };
                planned &= bytes.is_some() && own.is_none();
                pools[ids[at]] = pools[ids[at]].max(bytes.unwrap_or_default());
            }
        }
        if let Some(Json::Number(device)) = devices.and_then(|devices| devices.get(at)) {
            i32::try_from(*device).ok()?;
            if *place[ids[at]].get_or_insert(*device) != *device {
                planned = false;
            }
        } else if devices.is_some() {
            return None;
        }
    }
    Some((planned.then_some(pools), sure))
}

/// Returns the height, the width and the texel elements by GRF-53.
fn image(scope: &str, shape: &[usize]) -> Option<[u64; 3]> {
    let (texel, before) = shape.split_last()?;
    let rows = match (scope, shape.len()) {
        ("global.texture", rank) => rank.checked_sub(2)?,
        ("global.texture-weight", _) | ("global.texture-nhwc", 3) => 1,
        ("global.texture-nhwc", _) => 2,
        _ => return None,
    };
    let (rows, columns) = before.split_at_checked(rows)?;
    let product = |extents: &[usize]| extents.iter().try_fold(1_u64, |all, extent| all.checked_mul(*extent as u64));
    Some([product(rows)?, product(columns)?, *texel as u64])
}

/// Returns the bytes of an element by GRF-17. Knows the names in the goldens and in their mutants.
fn element_bytes(name: &str) -> Option<u64> {
    let letters = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == 'x');
    let known = ["int", "uint", "float", "bool", "handle", "bfloat", "void"].contains(&letters) || name.contains("float") || name.contains("custom");
    if name == "bool" {
        return Some(1);
    }
    if !known {
        return None;
    }
    let numbers = &name[letters.len()..];
    let (bits, lanes) = numbers.split_once('x').unwrap_or((numbers, "1"));
    let bits: u64 = if bits.is_empty() { if letters == "handle" { 64 } else { 32 } } else { bits.parse().ok()? };
    // Zero bits mean the same as no stated bits.
    let bits = if bits == 0 { 32 } else { bits };
    let lanes: u64 = lanes.parse().ok()?;
    // GRF-51.
    let all = bits * lanes;
    (all % 8 == 0 || all == 1 || all == 4).then_some(all.div_ceil(8))
}
