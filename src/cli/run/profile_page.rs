//! A profile as a page: a bar of the operators by their total time, a bar of the calls in their order, and a table. Without script.

use super::Operator;
use crate::cli::html::{STYLE, escape};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The width of a bar, in the units of its drawing.
const WIDTH: f64 = 1200.0;

/// The number of calls that are drawn, the longest ones. More are narrower than a pixel.
const MOST_CALLS: usize = 5_000;

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
    let total: Duration = operators.iter().map(|operator| operator.took).sum();
    let totals = by_name(operators);
    let colors: BTreeMap<&str, usize> = totals
        .iter()
        .enumerate()
        .map(|(index, each)| (each.name, index))
        .collect();
    let title = escape(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>profile of {title}</title>\n<style>{STYLE}\
         main{{max-width:78rem;margin:0 auto;padding:1rem}}svg{{display:block;width:100%;min-width:44rem;height:auto;border:1px solid var(--control);border-radius:6px}}\
         svg text{{font:13px var(--sans);fill:var(--text)}}</style>\n<main>\n<h1>Profile of {title}</h1>\n\
         <p>{} calls of {} operators took {:.1} us. Point at a part of a bar for its name and time.</p>\n<h2>By operator</h2>\n",
        operators.len(),
        totals.len(),
        micros(total),
    );
    let parts = totals
        .iter()
        .map(|each| (each.name, each.took, each.shapes));
    bar(&mut out, "time by operator", parts, total, &colors);
    out.push_str("<h2>In the order of the calls</h2>\n");
    // The shortest calls are left out of a long profile.
    let mut shortest: Vec<Duration> = operators.iter().map(|operator| operator.took).collect();
    shortest.sort_unstable_by(|left, right| right.cmp(left));
    let least = shortest.get(MOST_CALLS).copied();
    let calls = operators
        .iter()
        .filter(|call| least.is_none_or(|least| call.took > least));
    let calls = calls.map(|call| (call.name.as_str(), call.took, call.shapes.as_str()));
    bar(&mut out, "calls in their order", calls, total, &colors);
    out.push_str(
        "<h2>Table</h2>\n<div class=\"scroll\"><table><thead><tr><th>operator</th><th class=\"number\">calls</th>\
         <th class=\"number\">us</th><th class=\"number\">share</th><th>shapes of the longest call</th></tr></thead><tbody>\n",
    );
    for each in &totals {
        let _ = writeln!(
            out,
            "<tr><td><span style=\"background:{};padding:0 .6em;margin-right:.5em\"></span>{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{:.3}</td><td class=\"number\">{:.1} %</td><td>{}</td></tr>",
            color(&colors, each.name),
            escape(each.name),
            each.calls,
            micros(each.took),
            share(each.took, total) * 100.0,
            escape(each.shapes),
        );
    }
    out.push_str("</tbody></table></div>\n</main>\n</html>\n");
    out
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

/// Draws a bar of parts, each with its name, its time and its shapes, whose widths are their shares of `total`.
fn bar<'p>(
    out: &mut String,
    name: &str,
    parts: impl Iterator<Item = (&'p str, Duration, &'p str)>,
    total: Duration,
    colors: &BTreeMap<&str, usize>,
) {
    let _ = writeln!(
        out,
        "<div class=\"scroll\"><svg viewBox=\"0 0 {WIDTH} 50\" role=\"img\" aria-label=\"{name}\">"
    );
    let mut left = 0.0;
    for (name, took, shapes) in parts {
        let width = share(took, total) * WIDTH;
        let shown = escape(name);
        let _ = write!(
            out,
            "<g><title>{shown}: {:.3} us, {:.1} %, {}</title><rect x=\"{left:.2}\" y=\"0\" width=\"{:.2}\" height=\"50\" style=\"fill:{}\"/>",
            micros(took),
            share(took, total) * 100.0,
            escape(shapes),
            (width - 0.6).max(0.2),
            color(colors, name),
        );
        // A letter is about 7 units wide. A name that does not fit would cover its neighbours.
        let letters = name.chars().count();
        let fits = letters as f64 * 7.5 + 8.0 < width;
        if fits {
            let _ = write!(out, "<text x=\"{:.2}\" y=\"30\">{shown}</text>", left + 6.0);
        }
        out.push_str("</g>\n");
        left += width;
    }
    out.push_str("</svg></div>\n");
}

/// Returns a pale colour for an operator, which is a background for text in both schemes.
fn color(colors: &BTreeMap<&str, usize>, name: &str) -> String {
    // Multiples of the golden angle keep neighbours apart.
    let index = colors.get(name).copied().unwrap_or_default();
    let hue = (index as f64 * 137.508) % 360.0;
    format!("light-dark(hsl({hue:.0} 70% 80%),hsl({hue:.0} 45% 30%))")
}

fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

/// Returns the share of a time in the total, from 0 to 1.
fn share(took: Duration, total: Duration) -> f64 {
    if total.is_zero() {
        return 0.0;
    }
    took.as_secs_f64() / total.as_secs_f64()
}
