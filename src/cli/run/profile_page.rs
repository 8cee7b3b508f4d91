//! A profile as a page: a bar of the operators by their total time, a bar of the calls in their order, and a table. Without script.

use super::{Operator, micros};
use crate::cli::full::html::{STYLE, escape};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The number of calls that are drawn, the longest ones. More are narrower than a pixel.
const MOST_CALLS: usize = 5_000;

/// The smallest share of an operator that has its own part in the bar. On a wide screen it is one pixel.
const LEAST_PART: f64 = 0.001;

/// The smallest share of a part that has a line at its end, and of a part that has its name.
const LEAST_LINE: f64 = 0.004;
const LEAST_NAME: f64 = 0.03;

/// The shapes of the page. On a narrow screen, a row of the table becomes a name, a line of numbers and the shapes.
const PROFILE_STYLE: &str = "main{max-width:78rem;margin:0 auto;padding:1rem}\
    .parts{display:flex;height:3.2rem;border:1px solid var(--control);border-radius:6px;overflow:hidden}.calls{min-width:60rem}\
    .parts a{min-width:0;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;font-size:.87em;line-height:3.2rem;color:var(--text);text-decoration:none}\
    .parts a.line{box-shadow:inset -1px 0 var(--back)}.parts a.named{padding:0 .35em}.parts a:hover,.parts a:focus-visible{outline:2px solid var(--text);outline-offset:-2px}\
    .parts a,td i{background:light-dark(hsl(var(--h) 70% 80%),hsl(var(--h) 45% 30%))}.parts a.rest{background:var(--raised)}\
    td i{display:inline-block;width:1.1em;height:1.1em;margin-right:.5em;vertical-align:-.2em}tr:target{background:var(--mark)}th.name{width:40%}td.name{word-break:break-all;min-width:14rem}.parts a,td i{print-color-adjust:exact}\
    @media(max-width:40rem){thead{display:none}tr{display:flex;flex-wrap:wrap;gap:0 1rem;border-bottom:1px solid var(--line);padding:.3rem 0}\
    td{border:0;padding:0}td.name,td.shapes{flex:1 0 100%;overflow-wrap:anywhere}td.shapes{color:var(--faint)}.count::before{content:\"calls \"}.took::after{content:\" us\"}}";

/// The total time and the number of calls of one operator.
struct Total<'o> {
    name: &'o str,
    took: Duration,
    calls: usize,
    /// The shapes of its longest call.
    shapes: &'o str,
    longest: Duration,
}

/// Creates the page. `operators` are in the order of their calls.
pub(super) fn page(title: &str, operators: &[Operator]) -> String {
    let title = escape(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>profile of {title}</title>\n<style>{STYLE}{PROFILE_STYLE}</style>\n<main>\n<h1>Profile of {title}</h1>\n"
    );
    if operators.is_empty() {
        out.push_str("<p class=\"note warn\">The model called no operator. A function of exec_mode \"compiled\" shows none.</p>\n");
    } else {
        bars_and_table(&mut out, operators);
    }
    out.push_str("</main>\n</html>\n");
    out
}

/// Writes both bars and the table of at least one operator.
fn bars_and_table(out: &mut String, operators: &[Operator]) {
    let total: Duration = operators.iter().map(|operator| operator.took).sum();
    let totals = by_name(operators);
    let places = totals.iter().enumerate();
    let bar = Bar {
        total,
        places: places.map(|(index, each)| (each.name, index)).collect(),
        prefix: common_prefix(&totals),
    };
    let _ = writeln!(
        out,
        "<p>{} of {} took {:.1} us. Point at a part of a bar for its name and time; click it, or press Enter on it, for its row.</p>\n<h2>By operator</h2>\n<div class=\"parts\">",
        format_count(operators.len(), "call"),
        format_count(totals.len(), "operator"),
        micros(total),
    );
    let (wide, narrow): (Vec<_>, Vec<_>) = totals
        .iter()
        .partition(|each| share(each.took, total) >= LEAST_PART);
    for each in wide {
        bar.part(out, each.name, each.took, each.shapes, "");
    }
    if !narrow.is_empty() {
        let took = narrow.iter().map(|each| each.took).sum();
        let (wide, percent) = (share(took, total), share(took, total) * 100.0);
        let others = format_count(narrow.len(), "other operator");
        let _ = writeln!(
            out,
            "<a class=\"rest{}\" href=\"#table\" style=\"flex:{:.3} 0 0\" title=\"{others}: {:.3} us, {percent:.1} %\">{}</a>",
            if wide >= LEAST_NAME { " named" } else { "" },
            wide * 1000.0,
            micros(took),
            if wide >= LEAST_NAME { &*others } else { "" },
        );
    }
    out.push_str("</div>\n<h2>In the order of the calls</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"calls in their order\"><div class=\"parts calls\">\n");
    // The shortest calls are left out of a long profile.
    let mut shortest: Vec<Duration> = operators.iter().map(|operator| operator.took).collect();
    shortest.sort_unstable_by(|left, right| right.cmp(left));
    let least = shortest.get(MOST_CALLS).copied();
    for call in operators {
        if least.is_none_or(|least| call.took > least) {
            // Only the parts of the first bar are reached by the Tab key, because there may be thousands of calls.
            bar.part(out, &call.name, call.took, &call.shapes, " tabindex=\"-1\"");
        }
    }
    out.push_str(
        "</div></div>\n<h2 id=\"table\">Table</h2>\n<table><thead><tr><th class=\"name\">operator</th><th class=\"number\">calls</th>\
         <th class=\"number\">us</th><th class=\"number\">share</th><th>shapes of the longest call</th></tr></thead><tbody>\n",
    );
    for (index, each) in totals.iter().enumerate() {
        let _ = writeln!(
            out,
            "<tr id=\"o{index}\"><td class=\"name\"><i style=\"--h:{}\"></i>{}</td><td class=\"number count\">{}</td>\
             <td class=\"number took\">{:.3}</td><td class=\"number\">{:.1} %</td><td class=\"shapes\">{}</td></tr>",
            hue(index),
            escape(each.name),
            each.calls,
            micros(each.took),
            share(each.took, total) * 100.0,
            escape(each.shapes),
        );
    }
    out.push_str("</tbody></table>\n");
}

/// Sums the calls of each operator. The most expensive one is first.
fn by_name(operators: &[Operator]) -> Vec<Total<'_>> {
    let mut totals = BTreeMap::<&str, Total<'_>>::new();
    for call in operators {
        let total = totals.entry(&call.name).or_insert(Total {
            name: &call.name,
            took: Duration::ZERO,
            calls: 0,
            shapes: &call.shapes,
            longest: Duration::ZERO,
        });
        total.took += call.took;
        total.calls += 1;
        if call.took > total.longest {
            (total.longest, total.shapes) = (call.took, &call.shapes);
        }
    }
    let mut totals: Vec<Total<'_>> = totals.into_values().collect();
    totals.sort_by_key(|total| std::cmp::Reverse(total.took));
    totals
}

/// The common data of the parts of a bar.
struct Bar<'o> {
    total: Duration,
    /// The row of each operator in the table.
    places: BTreeMap<&'o str, usize>,
    /// The text before every name, which the parts leave out.
    prefix: &'o str,
}

impl Bar<'_> {
    /// Writes a part, whose width is its share of the total. `more` is an attribute.
    fn part(&self, out: &mut String, name: &str, took: Duration, shapes: &str, more: &str) {
        let index = self.places.get(name).copied().unwrap_or_default();
        let wide = share(took, self.total);
        let class = match wide {
            _ if wide >= LEAST_NAME => " class=\"line named\"",
            _ if wide >= LEAST_LINE => " class=\"line\"",
            _ => "",
        };
        let shown = name.strip_prefix(self.prefix).unwrap_or(name);
        let shown = shown.strip_prefix("vm.builtin.").unwrap_or(shown);
        let _ = writeln!(
            out,
            "<a{class}{more} href=\"#o{index}\" style=\"--h:{};flex:{:.3} 0 0\" title=\"{}: {:.3} us, {:.1} %{}{}\">{}</a>",
            hue(index),
            wide * 1000.0,
            escape(name),
            micros(took),
            wide * 100.0,
            if shapes.is_empty() { "" } else { ", " },
            escape(shapes),
            if wide >= LEAST_NAME {
                escape(shown)
            } else {
                String::new()
            },
        );
    }
}

/// Returns the text before all names that ends in `_` or `.`: `tvmgen_default_fused_`. A single name has none.
fn common_prefix<'o>(totals: &[Total<'o>]) -> &'o str {
    let [first, others @ ..] = totals else {
        return "";
    };
    let is_common = |prefix: &str| others.iter().all(|each| each.name.starts_with(prefix));
    let ends = first.name.match_indices(['_', '.']).map(|(at, _)| at + 1);
    let prefixes = ends.filter_map(|end| first.name.get(..end));
    let common = prefixes.take_while(|prefix| !others.is_empty() && is_common(prefix));
    common.last().unwrap_or_default()
}

/// Returns the hue of the operator in this row. Multiples of the golden angle keep neighbours apart. Its colour is pale, a background for
/// text in both schemes.
fn hue(index: usize) -> u32 {
    (index as f64 * 137.508 % 360.0) as u32
}

/// Returns a number with its noun.
fn format_count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the share of a time in the total, from 0 to 1.
fn share(took: Duration, total: Duration) -> f64 {
    if total.is_zero() {
        return 0.0;
    }
    took.as_secs_f64() / total.as_secs_f64()
}
