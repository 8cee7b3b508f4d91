// The filter of the failed cases of an implementation.
{
  const form = document.getElementById("filter"), status = document.getElementById("count");
  const failures = [...document.querySelectorAll("details[data-verdict]")];
  const texts = failures.map(failure => failure.textContent.toLowerCase());
  const rules = new Set(failures.flatMap(failure => failure.querySelector("summary").textContent.match(/\b[A-Z]{2,5}-\d+\b/g) ?? []).map(rule => rule.toLowerCase()));
  if (form) connectFilter(form, () => {
    const words = wordsOf(form.elements.words.value, rules), verdict = form.elements.verdict.value;
    let shown = 0;
    failures.forEach((failure, at) => {
      failure.hidden = !((!verdict || failure.dataset.verdict == verdict) && words.every(word => texts[at].includes(word)));
      shown += !failure.hidden;
    });
    for (const section of document.querySelectorAll("main section")) {
      const all = section.querySelectorAll("details").length, left = section.querySelectorAll("details:not([hidden])").length;
      section.hidden = !left;
      section.querySelector("h3 span").textContent = left == all ? all : `${left} of ${all}`;
    }
    status.textContent = shown == failures.length ? "" : shown ? `${shown} of ${failures.length} failed cases` : "No failed case matches.";
    if (location.hash.includes("=") && shown < failures.length) document.getElementById("failures").scrollIntoView();
  });
}
