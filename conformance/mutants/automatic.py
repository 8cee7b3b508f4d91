"""Automatic mutants: small changes to the product's code, by the grammar of Rust (tree-sitter).

Every mutant states its change as a line of source before and after, so that a list of accepted ones survives edits elsewhere in
the file. Constants, patterns and bodies of `const fn` are left out, because they cannot read a switch at run time.
"""

import hashlib
import re

import tree_sitter_rust
from plant import ORIGINAL, SWITCH, Mutant, Place
from tree_sitter import Language, Parser

PARSER = Parser(Language(tree_sitter_rust.language()))

COMPARED = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
COMPUTED = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&"}
# Methods and those that are used instead by mistake; each pair in both directions.
TWINS = [
    ("min", "max"), ("any", "all"), ("first", "last"), ("starts_with", "ends_with"), ("find", "rfind"), ("position", "rposition"),
    ("is_some", "is_none"), ("is_ok", "is_err"), ("take_while", "skip_while"), ("push_back", "push_front"), ("split_once", "rsplit_once"),
    ("pop_front", "pop_back"), ("fetch_add", "fetch_sub"), ("to_le_bytes", "to_be_bytes"), ("is_lt", "is_gt"), ("and", "or"),
] + [(f"{how}_add", f"{how}_sub") for how in ("checked", "saturating", "wrapping")]
TWIN = {**dict(TWINS), **{two: one for one, two in TWINS}, "checked_mul": "checked_add", "saturating_mul": "saturating_add"}
ENDIAN = {"from_le_bytes": "from_be_bytes", "from_be_bytes": "from_le_bytes"}
# Steps of a chain that are left out: the rest still has its type, mostly.
STEPS = {"rev", "skip", "take", "filter", "trim", "trim_start", "trim_end", "saturating_sub", "not", "abs", "to_lowercase", "to_ascii_lowercase"}
ANSWERS = {"contains", "contains_key", "eq", "is_empty", "insert", "is_subset"}
CHECKS = re.compile(r"\.(require|require_as|demand|note|expect)$")
KINDS = ["Truncated", "Trailing", "Malformed", "Unsupported", "Limit", "UnknownKind", "Missing", "Duplicate", "Cycle", "Type"]
NUMBER = re.compile(r"(0x[0-9a-fA-F_]+|0b[01_]+|0o[0-7_]+|[0-9_]+)((?:_?[iu](?:8|16|32|64|128|size))?)")
RULE = re.compile(r"[A-Z]{2,6}_\d\d")
VERSION = re.compile(r"V\d+_\d+")
# Code that is not compiled here, and text that only people read.
ELSEWHERE = re.compile(r"\btest\b|\bwindows\b|\bmiri\b|\bfuzzing\b|doctest|macos|not\(unix\)|not\(all\(|not\(target|wasm|\"cxx\"")
SILENT = {
    "line_comment", "block_comment", "attribute_item", "inner_attribute_item", "use_declaration", "macro_definition", "token_tree",
    "type_arguments", "type_parameters", "where_clause", "parameters", "closure_parameters", "struct_item", "union_item", "type_item",
    "generic_type", "reference_type", "pointer_type", "foreign_mod_item", "extern_crate_declaration", "function_signature_item",
    "array_type",
}
CONSTANT = {"const_item", "static_item", "enum_item", "const_block"}
PATTERNS = {"match_pattern", "let_condition", "let_declaration", "for_expression", "closure_expression"}


def collect(name, source):
    """Every mutant of the file `name`."""
    reader = Reader(name, source)
    reader.visit(PARSER.parse(source).root_node)
    times = {}
    for mutant in reader.found:
        facts = mutant.facts
        key = (facts["function"], facts["before"], facts["after"])
        times[key] = times.get(key, 0) + 1
        identity = "\0".join((name, *key, str(times[key])))
        facts["identity"] = hashlib.sha256(identity.encode()).hexdigest()
    return reader.found


class Reader:
    def __init__(self, name, source):
        self.name, self.source, self.found = name, source, []
        self.rules = sorted(set(re.findall(r"\b[A-Z]{2,6}_\d\d\b", source.decode())))
        self.versions = sorted(set(re.findall(r"\bV\d+_\d+\b", source.decode())))
        self.function = ""

    def text(self, node):
        return self.source[node.start_byte : node.end_byte].decode()

    def add(self, node, what, after, text=None, at=None):
        """Replaces `node` by `after`; `text` is the form with a switch, if it is not an expression."""
        start, end = at or (node.start_byte, node.end_byte)
        if text is None:
            text = f"(if {SWITCH} {{ {after} }} else {{ {ORIGINAL} }})"
        low = self.source.rfind(b"\n", 0, start) + 1
        high = self.source.find(b"\n", end)
        high = len(self.source) if high < 0 else high
        squeezed = lambda data: " ".join(data.decode().split())
        before = squeezed(self.source[low:high])
        changed = squeezed(self.source[low:start] + after.encode() + self.source[end:high])
        if before == changed:
            return
        facts = {"what": what, "line": node.start_point[0] + 1, "function": self.function, "before": before, "after": changed}
        self.found.append(Mutant([Place(self.name, start, end, text)], facts=facts))

    def visit(self, node):
        kind = node.type
        if kind in SILENT or kind in CONSTANT:
            return
        if kind == "impl_item" and node.child_by_field_name("trait") is not None:
            if self.text(node.child_by_field_name("trait")).endswith("Debug"):
                return
        if kind == "function_item":
            modifiers = [self.text(child) for child in node.children if child.type == "function_modifiers"]
            if any("const" in words.split() for words in modifiers):
                return
            self.function = self.text(node.child_by_field_name("name"))
        change = getattr(self, kind, None)
        if change is not None:
            change(node)
        if kind == "macro_invocation":
            return
        pattern = node.child_by_field_name("pattern") if kind in PATTERNS else None
        guard = node.child_by_field_name("condition") if kind == "match_pattern" else None
        skipped = ""
        for child in node.children:
            if child.type == "attribute_item":
                skipped += self.text(child)
                continue
            if child.type in ("line_comment", "block_comment"):
                continue
            attributes, skipped = skipped, ""
            if "cfg" in attributes and ELSEWHERE.search(attributes) or "#[test]" in attributes:
                continue
            is_pattern = kind == "match_pattern" and child != guard or pattern is not None and child == pattern
            if not is_pattern:
                self.visit(child)

    # Expressions.

    def binary_expression(self, node):
        left, right = (node.child_by_field_name(side) for side in ("left", "right"))
        sign = self.text(node.child_by_field_name("operator"))
        if binds(left) or binds(right):
            return
        one, two = self.text(left), self.text(right)
        for other in COMPARED.get(sign, ()):
            self.add(node, "comparison", f"{one} {other} {two}")
        if sign in COMPUTED:
            self.add(node, "arithmetic", f"{one} {COMPUTED[sign]} {two}")
        if sign in ("&&", "||"):
            other = {"&&": "||", "||": "&&"}[sign]
            neutral = f"(({ORIGINAL}) || {SWITCH})" if sign == "&&" else f"(({ORIGINAL}) && !{SWITCH})"
            self.add(node, "boolean", f"({one}) {other} ({two})")
            self.add(left, "half of a condition", "true" if sign == "&&" else "false", neutral)
            self.add(right, "half of a condition", "true" if sign == "&&" else "false", neutral)

    def compound_assignment_expr(self, node):
        sign = self.text(node.child_by_field_name("operator"))
        other = {"+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<="}.get(sign)
        if other:
            left, right = (self.text(node.child_by_field_name(side)) for side in ("left", "right"))
            self.add(node, "arithmetic", f"{left} {other} {right}")

    def unary_expression(self, node):
        operand = node.children[-1]
        if self.text(node).startswith("!"):
            self.add(node, "negation", self.text(operand))

    def boolean_literal(self, node):
        other = "false" if self.text(node) == "true" else "true"
        self.add(node, "constant", other, f"({ORIGINAL} ^ {SWITCH})")

    def integer_literal(self, node):
        match = NUMBER.fullmatch(self.text(node))
        if match is None:
            return
        value = int(match[1].replace("_", ""), 0)
        for other in (value + 1, value - 1):
            if other >= 0:
                digits = f"{other:#x}" if match[1].startswith("0x") else str(other)
                self.add(node, "constant", f"{digits}{match[2]}")

    def string_literal(self, node):
        whole = self.text(node)
        # A sentence is a message, which people read.
        if re.fullmatch(r'b?"[^"\\{} ]{2,}"', whole):
            self.add(node, "text", f'{whole[:-1]}~"')

    def range_expression(self, node):
        if len(node.children) == 3:
            end = node.children[2]
            if end.type != "integer_literal":
                self.add(end, "range", f"({self.text(end)}) + 1")
                self.add(end, "range", f"({self.text(end)}) - 1")

    def macro_invocation(self, node):
        if self.text(node.child_by_field_name("macro")) == "matches" and node.parent.type != "expression_statement":
            self.add(node, "negation", f"!{self.text(node)}", f"(({ORIGINAL}) ^ {SWITCH})")

    def scoped_identifier(self, node):
        if node.parent.type in ("scoped_identifier", "scoped_type_identifier", "generic_function", "scoped_use_list"):
            return
        path, name = self.text(node).rsplit("::", 1)
        if path.split("::")[-1] == "Kind" and name in KINDS:
            self.add(node, "kind", f"{path}::{another(KINDS, name, node)}")
        elif VERSION.fullmatch(name) and len(self.versions) > 1:
            self.add(node, "release", f"{path}::{another(self.versions, name, node)}")
        elif RULE.fullmatch(name) and len(self.rules) > 1:
            self.add(node, "rule", f"{path}::{another(self.rules, name, node)}")

    def identifier(self, node):
        name = self.text(node)
        if RULE.fullmatch(name) and len(self.rules) > 1 and node.parent.type != "scoped_identifier":
            self.add(node, "rule", another(self.rules, name, node))

    def call_expression(self, node):
        function, arguments = (node.child_by_field_name(part) for part in ("function", "arguments"))
        passed = [child for child in arguments.children if child.is_named and "comment" not in child.type]
        for at in range(len(passed) - 1):
            one, two = self.text(passed[at]), self.text(passed[at + 1])
            plain = all(len(text) < 40 and "|" not in text and '"' not in text for text in (one, two))
            if plain and one != two:
                start, end = passed[at].start_byte, passed[at + 1].end_byte
                between = self.source[passed[at].end_byte : passed[at + 1].start_byte].decode()
                whole = self.source[node.start_byte : start] + f"{two}{between}{one}".encode() + self.source[end : node.end_byte]
                self.add(node, "arguments", whole.decode())
        if function.type == "scoped_identifier":
            path, name = self.text(function).rsplit("::", 1)
            if name in ENDIAN:
                self.add(node, "method", f"{path}::{ENDIAN[name]}{self.text(arguments)}")
        if function.type != "field_expression":
            return
        name, value = self.text(function.child_by_field_name("field")), self.text(function.child_by_field_name("value"))
        if name in TWIN:
            self.add(node, "method", f"{value}.{TWIN[name]}{self.text(arguments)}")
        if name in STEPS:
            self.add(node, "step left out", value)
        is_answer = name in ANSWERS or name.startswith("is_") and name not in TWIN and name != "is_off"
        # A statement drops the answer.
        if is_answer and node.parent.type != "expression_statement":
            self.add(node, "negation", f"!{self.text(node)}", f"(({ORIGINAL}) ^ {SWITCH})")

    # Statements, and the conditions that decide which are executed.

    def expression_statement(self, node):
        whole = self.text(node)
        inner = node.children[0]
        if not whole.endswith(";"):
            return
        while inner.type == "try_expression":
            inner = inner.children[0]
        what = None
        if inner.type in ("assignment_expression", "compound_assignment_expr", "return_expression", "break_expression", "continue_expression"):
            what = "statement left out"
        elif inner.type == "call_expression":
            is_check = CHECKS.search(self.text(inner.child_by_field_name("function")))
            what = "check left out" if is_check else "statement left out"
        if what:
            self.add(node, what, "", f"if !{SWITCH} {{ {ORIGINAL} }}")

    def if_expression(self, node):
        condition = node.child_by_field_name("condition")
        text = self.text(condition)
        if binds(condition):
            self.add(condition, "condition", f"false && {text}", f"!{SWITCH} && {ORIGINAL}")
            return
        self.add(condition, "condition", "false", f"(({ORIGINAL}) && !{SWITCH})")
        self.add(condition, "condition", "true", f"(({ORIGINAL}) || {SWITCH})")

    def match_expression(self, node):
        arms = [child for child in node.child_by_field_name("body").children if child.type == "match_arm"]
        patterns = [arm.child_by_field_name("pattern") for arm in arms]
        if len(arms) < 2 or not re.fullmatch(r"_|[a-z][a-z0-9_]*", self.text(patterns[-1])):
            return
        for pattern in patterns[:-1]:
            guard = pattern.child_by_field_name("condition")
            if guard is None:
                self.add(pattern, "arm left out", f"{self.text(pattern)} if false", f"{ORIGINAL} if !{SWITCH}")
            elif not binds(guard):
                self.add(guard, "condition", "true", f"(({ORIGINAL}) || {SWITCH})")

    def function_item(self, node):
        body, returned = (node.child_by_field_name(part) for part in ("body", "return_type"))
        if body is None:
            return
        at = (body.start_byte + 1, body.start_byte + 1)
        for value in defaults(" ".join(self.text(returned).split()) if returned else ""):
            self.add(node, "value returned", f" return {value};", f" if {SWITCH} {{ return {value}; }}", at=at)


def binds(node):
    """Whether a condition has a `let` in it, so that it is no expression."""
    if node.type in ("let_condition", "let_chain"):
        return True
    if node.type in ("block", "closure_expression", "match_expression", "if_expression"):
        return False
    return any(binds(child) for child in node.children)


def another(names, name, node):
    others = [one for one in names if one != name]
    return others[node.start_byte % len(others)]


def defaults(returned):
    """Values that a function of this type could return for want of better ones."""
    bare = re.sub(r"^(\w+::)*Result<(.*?)(, \w+)?>$", r"\2", returned)
    wrapped = (lambda value: f"Ok({value})") if bare != returned else (lambda value: value)
    if bare == "":
        return [""]
    if bare == "()":
        return [wrapped("()")]
    if bare == "bool":
        return [wrapped("true"), wrapped("false")]
    if re.fullmatch(r"[iu](8|16|32|64|128|size)|c_int|f32|f64", bare):
        return [wrapped("0.0" if bare[0] == "f" else value) for value in ("0", "1")][: 1 if bare[0] == "f" else 2]
    if bare.startswith("Option<"):
        return [wrapped("None")]
    if bare == "String" or bare.startswith("Vec<"):
        return [wrapped(f"{bare.partition('<')[0]}::new()")]
    if re.fullmatch(r"&('\w+ )?(str|\[.*\])", bare):
        return [wrapped('""' if bare.endswith("str") else "&[]")]
    return []
