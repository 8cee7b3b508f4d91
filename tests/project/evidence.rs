//! Tests that statements of the specification about releases are true of upstream.
//!
//! A *boundary* is a release `0.N` with which behaviour changes, by the `since` or `until` of a rule or by its text. Examples of texts
//! are `from 0.7 on`, `up to 0.6`, `0.9 to 0.13` and `0.21 alone`. Each boundary has its evidence in `spec/evidence/<chapter>.toml`:
//!
//! ```toml
//! [TREE-03]
//! since.present = ["apache/tvm", "v0.7.0", "src/target/codegen.cc", "import_tree_row_ptr"]
//! since.absent  = ["apache/tvm", "v0.6.1", "src/codegen/codegen.cc", "import_tree_row_ptr"]
//! observed      = ["0.8.0", "0.27 (readers do not check)"]
//!
//! [TREE-13]
//! since.as  = "TREE-03"
//! until.inferred = "why nothing better is known"
//! ```
//!
//! * A **probe** is a repository, a tag, a path and a text that is present or absent. A boundary needs two probes: one of the last
//!   release before it, and one of the first release after it. An empty text stands for the path itself, and a path that ends with `/`
//!   for every file below it. If a file is absent, the folder that would contain it is searched. Several probes are a list of lists.
//! * The key is `since`, or `until` (the boundary after it), or `says.N` for a release 0.N that only the text mentions. `says."from
//!   0.10"` means the same as `says.10`, and so does `says."up to 0.9"`. Tags are those of `tables/releases.json`, which has a commit
//!   for 0.27.
//! * `as` refers to the same boundary of another rule.
//! * `run` names the script, relative to the repository root, that was run on both releases because source cannot prove the boundary.
//! * `inferred` is the reason why there is neither. Fewer than one boundary in twenty may be inferred.
//! * A *universal claim* is a sentence about all releases: one of `Upstream:` with a word such as `every` or `never`, or any other
//!   sentence with `every release`, `no release` or `released runtimes`. `claims."words of the sentence"` has its proof. The proof is
//!   `run`, or probes that are present, or absent, in all releases of the rule; these have a range of releases instead of a tag
//!   (`"0.7..0.20"`, `"0.16.."`).
//! * `source`, `observed`, `documented` and `inferred` of the rule itself are for readers: `tvmspec rule` prints them.
//!
//! Probes run on bare clones, `tvm.git` and `tvm-ffi.git`, in the folder that `TVMSPEC_UPSTREAM` names.

#![cfg(feature = "suite")]

mod boundary;
mod claims;
mod not_covered;
mod proof;
mod tables;
mod upstream;

use crate::support::skip::skipped;
use proof::{Chapter, Evidence, Probe, Proof};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use tvmspec::release::Release;
use tvmspec::spec::{self, RuleText};

/// Chapters with incomplete evidence. Their missing boundaries are counted, and do not fail.
const OPEN: [&str; 0] = [];

fn root() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
}

fn chapters() -> BTreeMap<&'static str, Chapter> {
    let mut chapters: BTreeMap<&str, Chapter> = BTreeMap::new();
    for rule in spec::rules() {
        chapters.entry(&rule.chapter).or_insert_with(|| {
            let path = root().join(format!("spec/evidence/{}.toml", rule.chapter));
            let text = fs::read_to_string(&path).unwrap_or_default();
            proof::read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        });
    }
    chapters
}

/// The tags and commits that stand for a release, as `repository tag`. Changes in patch releases are ignored, so that the first state
/// of a release counts like the last.
struct Tags(BTreeSet<(u8, String)>);

impl Tags {
    fn read() -> Tags {
        let path = root().join("spec/evidence/tables/releases.json");
        let text = fs::read_to_string(path).expect("the table of releases is there");
        let rows: Vec<Value> = serde_json::from_str(&text).expect("rows");
        let mut tags = BTreeSet::new();
        for row in &rows {
            let of = |pointer: &str| row.pointer(pointer).and_then(Value::as_str);
            let release: Release = of("/release").expect("named").parse().expect("a release");
            let minor = release.minor();
            for state in ["/first", "/last"] {
                let tag = of(state).expect("a tag");
                tags.insert((minor, format!("apache/tvm {tag}")));
            }
            // A release of TVM is built on this state of tvm-ffi, or on one a few commits after a tag.
            let behind = of("/tvm_ffi/behind")
                .filter(|_| release < Release::LAST)
                .map(|tag| tag.split('-').next().unwrap_or(tag));
            for at in of("/tvm_ffi/at").into_iter().chain(behind) {
                tags.insert((minor, format!("apache/tvm-ffi {at}")));
            }
        }
        Tags(tags)
    }

    /// Returns on which side of the boundary a probe is: `Some(true)` for the release after it.
    fn side(&self, probe: &Probe, boundary: u8) -> Option<bool> {
        let name = format!("{} {}", probe.repository, probe.tag);
        if self.0.contains(&(boundary, name.clone())) {
            return Some(true);
        }
        self.0.contains(&(boundary - 1, name)).then_some(false)
    }

    /// Returns the states that a probe is about, with the minors of their releases: the state of its tag, or those of its repository in
    /// a range of releases.
    fn states(&self, probe: &Probe) -> Result<Vec<(u8, &str)>, String> {
        let of_repository = self.0.iter().filter_map(|(minor, name)| {
            let tag = name.strip_prefix(&probe.repository)?.strip_prefix(' ')?;
            Some((*minor, tag))
        });
        let states: Vec<(u8, &str)> = match probe.tag.split_once("..") {
            None => of_repository.filter(|(_, tag)| *tag == probe.tag).collect(),
            Some((since, until)) => {
                let minor = |text: &str, open: Release| match text {
                    "" => Ok(open.minor()),
                    text => text
                        .parse::<Release>()
                        .map(|release| release.minor())
                        .map_err(|error| error.to_string()),
                };
                let range = minor(since, Release::FIRST)?..=minor(until, Release::LAST)?;
                of_repository
                    .filter(|(minor, _)| range.contains(minor))
                    .collect()
            }
        };
        if states.is_empty() {
            let Probe {
                repository, tag, ..
            } = probe;
            return Err(format!("{repository} {tag} is a state of no release"));
        }
        Ok(states)
    }
}

/// Returns the proof for a boundary from the evidence of a rule.
fn proof_of<'e>(rule: &RuleText, evidence: &'e Evidence, boundary: u8) -> Option<&'e Proof> {
    if rule.releases.since.minor() == boundary && evidence.since.is_some() {
        return evidence.since.as_ref();
    }
    if rule.releases.until.minor() + 1 == boundary && evidence.until.is_some() {
        return evidence.until.as_ref();
    }
    evidence.says.get(&boundary)
}

#[derive(Default)]
struct Count {
    boundaries: usize,
    probed: usize,
    probes: usize,
    run: usize,
    inferred: usize,
    missing: Vec<String>,
}

#[test]
fn every_boundary_has_its_evidence() {
    let chapters = chapters();
    let tags = Tags::read();
    let mut problems = Vec::new();
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let mut inferred = Vec::new();
    for rule in spec::rules() {
        let count = counts.entry(&rule.chapter).or_default();
        let empty = Evidence::default();
        let evidence = chapters[rule.chapter.as_str()]
            .get(&rule.id)
            .unwrap_or(&empty);
        let mut boundaries = boundary::boundaries(rule);
        let named = evidence.says.keys().copied();
        boundaries.extend(named.filter(|minor| boundary::mentions(rule, *minor)));
        problems.extend(unneeded(rule, evidence, &boundaries));
        for &boundary in &boundaries {
            count.boundaries += 1;
            let name = format!("{} at 0.{boundary}", rule.id);
            let Some(own) = proof_of(rule, evidence, boundary) else {
                count.missing.push(name);
                continue;
            };
            let proof = match referred(&chapters, own, boundary) {
                Ok(proof) => proof,
                Err(error) => {
                    problems.push(format!("{name}: {error}"));
                    continue;
                }
            };
            match judge(&tags, proof, boundary) {
                Ok(Kind::Probed) => {
                    count.probed += 1;
                    count.probes += own.probes().count();
                }
                Ok(Kind::Run) => count.run += 1,
                Ok(Kind::Inferred(why)) => {
                    count.inferred += 1;
                    inferred.push(format!("{name}: {why}"));
                }
                Err(error) => problems.push(format!("{name}: {error}")),
            }
        }
    }
    for (chapter, evidence) in &chapters {
        let unknown = evidence
            .keys()
            .filter(|id| spec::rule(id).is_none_or(|rule| rule.chapter != *chapter));
        problems.extend(
            unknown.map(|id| format!("{chapter}.toml: chapter {chapter} has no rule {id}")),
        );
    }
    show(&counts, &inferred);
    for (chapter, count) in &counts {
        let open = OPEN.contains(chapter);
        if !open {
            problems.extend(
                count
                    .missing
                    .iter()
                    .map(|name| format!("{name}: no evidence")),
            );
        } else if count.missing.is_empty() {
            problems.push(format!(
                "chapter {chapter} is complete: take it out of OPEN"
            ));
        }
    }
    let total: usize = counts.values().map(|count| count.boundaries).sum();
    let unproved: usize = counts.values().map(|count| count.inferred).sum();
    if unproved * 20 >= total {
        problems.push(format!(
            "{unproved} of {total} boundaries are inferred: no more than 5 % may be"
        ));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_universal_claim_has_its_proof() {
    let chapters = chapters();
    let tags = Tags::read();
    let mut problems = Vec::new();
    let (mut stated, mut inferred) = (0, 0);
    for rule in spec::rules() {
        let empty = Evidence::default();
        let evidence = chapters[rule.chapter.as_str()]
            .get(&rule.id)
            .unwrap_or(&empty);
        let sentences = claims::universal(rule);
        stated += sentences.len();
        for sentence in &sentences {
            let mut proved = evidence.claims.keys();
            if !proved.any(|words| claims::has_words(sentence, words)) {
                problems.push(format!(
                    "{}: add evidence for this sentence, or state the observation only: {sentence}",
                    rule.id
                ));
            }
        }
        for (words, proof) in &evidence.claims {
            let id = &rule.id;
            let mut claimed = sentences.iter();
            if !claimed.any(|sentence| claims::has_words(sentence, words)) {
                problems.push(format!("{id}: claims.\"{words}\": no sentence says so"));
            }
            match judge_claim(&tags, rule, proof) {
                Ok(Kind::Inferred(_)) => inferred += 1,
                Ok(_) => {}
                Err(error) => problems.push(format!("{id}: claims.\"{words}\": {error}")),
            }
        }
    }
    println!("{stated} universal claims, {inferred} of them inferred");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Checks the form of the proof of a claim: probes for each release of the rule, a script, or a reason.
fn judge_claim<'e>(tags: &Tags, rule: &RuleText, proof: &'e Proof) -> Result<Kind<'e>, String> {
    if let Some(why) = &proof.inferred {
        return Ok(Kind::Inferred(why));
    }
    if let Some(script) = &proof.run {
        if root().join(script).is_file() {
            return Ok(Kind::Run);
        }
        return Err(format!("`{script}` is no file"));
    }
    let mut probed = BTreeSet::new();
    for probe in proof.probes() {
        probed.extend(tags.states(probe)?.into_iter().map(|(minor, _)| minor));
    }
    let mut held = rule.releases.since.minor()..=rule.releases.until.minor();
    match held.find(|minor| !probed.contains(minor)) {
        Some(minor) => Err(format!("it has no probe for 0.{minor}")),
        None => Ok(Kind::Probed),
    }
}

/// Lists evidence for statements that the rule does not make.
fn unneeded(rule: &RuleText, evidence: &Evidence, boundaries: &BTreeSet<u8>) -> Vec<String> {
    let mut problems = Vec::new();
    for key in evidence.says.keys() {
        if !boundaries.contains(key) {
            problems.push(format!(
                "{}: says.{key}: the rule states no such boundary",
                rule.id
            ));
        }
    }
    let covered = |minor: u8| boundaries.contains(&minor);
    if evidence.since.is_some() && !covered(rule.releases.since.minor()) {
        problems.push(format!(
            "{}: since: the rule holds from the first release on",
            rule.id
        ));
    }
    if evidence.until.is_some() && !covered(rule.releases.until.minor() + 1) {
        problems.push(format!(
            "{}: until: the rule holds in the last release",
            rule.id
        ));
    }
    problems
}

/// Returns the proof itself, or the one that it refers to.
fn referred<'e>(
    chapters: &'e BTreeMap<&str, Chapter>,
    own: &'e Proof,
    boundary: u8,
) -> Result<&'e Proof, String> {
    let Some(other) = &own.same_as else {
        return Ok(own);
    };
    let rule = spec::rule(other).ok_or_else(|| format!("as {other}: no rule has this id"))?;
    let evidence = chapters[rule.chapter.as_str()].get(other);
    let found = evidence.and_then(|evidence| proof_of(rule, evidence, boundary));
    let found = found.ok_or_else(|| format!("as {other}: it has no evidence for 0.{boundary}"))?;
    if found.same_as.is_some() {
        return Err(format!("as {other}: it refers to another rule itself"));
    }
    Ok(found)
}

enum Kind<'e> {
    Probed,
    Run,
    Inferred(&'e str),
}

/// Checks the form of a proof: probes on both sides of the boundary, a script, or a reason.
fn judge<'e>(tags: &Tags, proof: &'e Proof, boundary: u8) -> Result<Kind<'e>, String> {
    if let Some(why) = &proof.inferred {
        return match proof.probes().next() {
            None if !why.trim().is_empty() => Ok(Kind::Inferred(why)),
            None => Err("inferred, and no reason".to_owned()),
            Some(_) => Err("inferred, and probed".to_owned()),
        };
    }
    if let Some(script) = &proof.run {
        return if root().join(script).is_file() {
            Ok(Kind::Run)
        } else {
            Err(format!("`{script}` is no file"))
        };
    }
    let mut sides = BTreeSet::new();
    for probe in proof.probes() {
        let side = tags.side(probe, boundary).ok_or_else(|| {
            let Probe {
                repository, tag, ..
            } = probe;
            let before = boundary - 1;
            format!("{repository} {tag} is neither of 0.{before} nor of 0.{boundary}")
        })?;
        sides.insert(side);
    }
    if sides.len() < 2 {
        return Err("a probe on each side of the boundary is needed".to_owned());
    }
    if proof.present.is_empty() {
        return Err("nothing is present on either side".to_owned());
    }
    Ok(Kind::Probed)
}

fn show(counts: &BTreeMap<&str, Count>, inferred: &[String]) {
    println!(
        "{:12} boundaries  probed  probes  run  inferred  missing",
        "chapter"
    );
    let row = |name: &str, counts: &[&Count]| {
        let sum = |of: fn(&Count) -> usize| counts.iter().map(|count| of(count)).sum::<usize>();
        println!(
            "{name:12} {:10}  {:6}  {:6}  {:3}  {:8}  {:7}",
            sum(|count| count.boundaries),
            sum(|count| count.probed),
            sum(|count| count.probes),
            sum(|count| count.run),
            sum(|count| count.inferred),
            sum(|count| count.missing.len()),
        );
    };
    for (chapter, count) in counts {
        row(chapter, &[count]);
    }
    row("all", &counts.values().collect::<Vec<_>>());
    for line in inferred {
        println!("inferred: {line}");
    }
    for missing in counts.values().flat_map(|count| &count.missing) {
        println!("missing: {missing}");
    }
}

/// Opens the clones by repository, or says why they are missing.
fn clones() -> Result<HashMap<&'static str, upstream::BareClone>, String> {
    let folder = env::var_os("TVMSPEC_UPSTREAM")
        .ok_or("TVMSPEC_UPSTREAM names no folder with clones of upstream")?;
    let mut clones = HashMap::new();
    for (name, file) in [("apache/tvm", "tvm.git"), ("apache/tvm-ffi", "tvm-ffi.git")] {
        let path = Path::new(&folder).join(file);
        if !path.join("HEAD").is_file() {
            return Err(format!("{} is no bare clone", path.display()));
        }
        clones.insert(name, upstream::BareClone::open(&path));
    }
    Ok(clones)
}

/// Compares the output of `generate.py` with the committed tables.
#[test]
fn the_tables_are_what_upstream_says() {
    // The error of `clones` states why upstream is not available.
    if let Err(why) = clones() {
        return skipped(why);
    }
    let script = root().join("spec/evidence/generate.py");
    let run = Command::new("python3")
        .arg(script)
        .arg(env::var_os("TVMSPEC_UPSTREAM").expect("there are clones"))
        .arg("--check")
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) => return skipped(format!("`python3` does not run: {error}")),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
}

#[test]
fn every_probe_is_true() {
    let mut clones = match clones() {
        Ok(clones) => clones,
        Err(why) => return skipped(why),
    };
    let tags = Tags::read();
    let mut problems = Vec::new();
    let mut ran = 0;
    for evidence in chapters().values() {
        for (id, evidence) in evidence {
            for proof in evidence.proofs() {
                let present = proof.present.iter().map(|probe| (probe, true));
                let absent = proof.absent.iter().map(|probe| (probe, false));
                for (probe, wanted) in present.chain(absent) {
                    let Probe {
                        repository,
                        path,
                        text,
                        ..
                    } = probe;
                    let Some(clone) = clones.get_mut(repository.as_str()) else {
                        problems.push(format!("{id}: there is no clone of {repository}"));
                        continue;
                    };
                    let states = match tags.states(probe) {
                        Ok(states) => states,
                        Err(error) => {
                            problems.push(format!("{id}: {error}"));
                            continue;
                        }
                    };
                    // Several releases of TVM may share one state of tvm-ffi.
                    let states: BTreeSet<&str> = states.into_iter().map(|(_, tag)| tag).collect();
                    for tag in states {
                        ran += 1;
                        let is = match wanted {
                            true if clone.has(tag, path, text) => continue,
                            true => "is not there",
                            false if clone.lacks(tag, path, text) => continue,
                            false => "is there, or beside it",
                        };
                        problems.push(format!("{id}: {repository} {tag} {path}: `{text}` {is}"));
                    }
                }
            }
        }
    }
    println!("{ran} probes ran, {} are false", problems.len());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
