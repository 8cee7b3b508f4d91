// The map of bytes: a strip of a whole unit, a strip of a window of it, the field of the pinned byte, and the bytes in hexadecimal.
import { colorOf, element, hex, sentence, size } from "./dom.js";
import { fieldAt, isUnread, kindOf, KINDS, lastBefore } from "./model.js";
import { ruleText } from "./rules.js";

/** Rows of the hex view. */
const ROWS = 20;

/**
 * @typedef {{node: any, show: (unit: number, offset: number, focus?: boolean) => void}} BytesView
 */

/**
 * Creates the view. `moved` is called with unit and offset after each pin, for the address of the page. `signal` ends the listeners
 * on objects that outlive the view.
 * @param {import("./model.js").Model} model @param {(unit: number, offset: number) => void} moved @param {AbortSignal} signal
 * @returns {BytesView}
 */
export function bytesView(model, moved, signal) {
  let current = 0;
  let pin = 0;
  /** The window of the lower strip: its first byte, and the number of bytes. */
  let from = 0;
  let length = 1;
  let drawing = 0;
  const unit = () => model.units[current];

  const choice = element("select", { "aria-label": "part of the file", onchange: () => show(Number(choice.value), 0) },
    model.units.map((each, index) => element("option", { value: index }, `${shortName(model, each)}: ${each.format.replace(/`/g, "")}, ${size(each.bytes)}`)));
  const whole = element("canvas", { height: 22 });
  const near = element("canvas", { height: 64 });
  const wholeStrip = element("div", { class: "strip whole", title: "the whole part; click to go there" }, whole);
  const nearStrip = element("div", {
    class: "strip", tabindex: 0, role: "slider", "aria-label": "map of bytes", "aria-describedby": "map-keys",
    "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0,
  }, near);
  const tip = element("div", { class: "tip", hidden: true });
  const place = element("input", { size: 10, "aria-label": "go to an offset, such as 0x1f8", placeholder: "0x1f8", spellcheck: "false", oninput: () => place.setCustomValidity("") });
  const controls = element("div", { class: "row" },
    model.units.length > 1 ? choice : element("p", { class: "faint caption" }, choice.textContent),
    button("−", "zoom out", () => zoom(2)), button("+", "zoom in", () => zoom(0.5)), button("All", "show the whole part", () => all()),
    button("‹ Field", "the field before", () => step(-1)), button("Field ›", "the next field", () => step(1)),
    element("form", { class: "row", onsubmit: goTo }, place, element("button", {}, "Go")));
  const legend = element("div", { class: "legend" });
  const field = element("section", { class: "field" });
  // One line for a screen reader. On the map, the text of the slider already has it.
  const said = element("p", { class: "sr", "aria-live": "polite" });
  const bytes = element("div", { class: "hex", tabindex: 0, role: "group", "aria-label": "bytes; the arrow keys move the pin" });
  const node = element("div", {}, controls, element("p", { class: "sr", id: "map-keys" },
    "Left and right go to the field before and after, with Shift by one byte. Up and down zoom, as does the wheel with Ctrl. Home and End go to the first and last byte."),
  wholeStrip, element("div", { style: "height:4px" }), nearStrip, legend, element("div", { class: "bytes" }, bytes, field), said, tip);

  nearStrip.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    // Without Ctrl the wheel scrolls the page.
    if (!isSideways && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (isSideways) slide(Math.sign(event.deltaX || event.deltaY) * length / 10);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, at(event, nearStrip, from, length));
  }, { passive: false });
  /** @type {{x: number, from: number, moved: boolean} | null} */
  let drag = null;
  nearStrip.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    drag = { x: event.clientX, from, moved: false };
    nearStrip.setPointerCapture(event.pointerId);
  });
  nearStrip.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    if (drag && Math.abs(event.clientX - drag.x) > 4) {
      drag.moved = true;
      from = clamp(drag.from - (event.clientX - drag.x) / nearStrip.clientWidth * length, 0, unit().bytes - length);
      redraw();
    }
    hover(event, at(event, nearStrip, from, length));
  });
  nearStrip.addEventListener("pointerup", (/** @type {PointerEvent} */ event) => {
    if (drag && !drag.moved) pinTo(at(event, nearStrip, from, length), false);
    drag = null;
  });
  nearStrip.addEventListener("pointercancel", () => { drag = null; });
  bytes.addEventListener("pointerover", (/** @type {any} */ event) => {
    const over = event.target.dataset?.at;
    if (over === undefined) tip.hidden = true;
    else hover(event, Number(over));
  });
  for (const each of [nearStrip, bytes]) each.addEventListener("pointerleave", () => { tip.hidden = true; });
  wholeStrip.addEventListener("click", (/** @type {PointerEvent} */ event) => {
    const to = at(event, wholeStrip, 0, unit().bytes);
    from = clamp(to - length / 2, 0, unit().bytes - length);
    pinTo(to, false);
  });
  nearStrip.addEventListener("keydown", keys);
  bytes.addEventListener("keydown", keys);
  bytes.addEventListener("click", (/** @type {any} */ event) => {
    const to = event.target.dataset?.at;
    if (to !== undefined) pinTo(Number(to), false);
  });
  new ResizeObserver(() => { redraw(); void hexRows(); }).observe(nearStrip);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(), { signal });
  document.addEventListener("theme", () => redraw(), { signal });

  /** @param {string} text @param {string} title @param {() => void} act */
  function button(text, title, act) {
    return element("button", { type: "button", title, "aria-label": title, onclick: act }, text);
  }

  /** @param {Event} event */
  function goTo(event) {
    event.preventDefault();
    const to = Number(place.value.trim());
    if (place.value.trim() !== "" && Number.isInteger(to) && to >= 0 && to < unit().bytes) pinTo(to, true);
    else place.setCustomValidity(`an offset from 0 to ${hex(Math.max(unit().bytes - 1, 0))}`);
    place.reportValidity();
  }

  /** @param {KeyboardEvent} event */
  function keys(event) {
    const inHex = event.currentTarget === bytes;
    const row = columns();
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowLeft: () => (inHex || event.shiftKey ? pinTo(pin - 1, true) : step(-1)),
      ArrowRight: () => (inHex || event.shiftKey ? pinTo(pin + 1, true) : step(1)),
      ArrowUp: () => (inHex ? pinTo(pin - row, true) : zoom(0.5)),
      ArrowDown: () => (inHex ? pinTo(pin + row, true) : zoom(2)),
      PageUp: () => pinTo(pin - row * ROWS, true),
      PageDown: () => pinTo(pin + row * ROWS, true),
      Home: () => pinTo(0, true),
      End: () => pinTo(unit().bytes - 1, true),
      "+": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => all(),
      n: () => step(1),
      p: () => step(-1),
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  /** @param {MouseEvent} event @param {any} strip @param {number} start @param {number} count */
  function at(event, strip, start, count) {
    const box = strip.getBoundingClientRect();
    return Math.floor(clamp(start + (event.clientX - box.left) / box.width * count, 0, Math.max(unit().bytes - 1, 0)));
  }

  /** @param {PointerEvent} event @param {number} offset */
  function hover(event, offset) {
    const found = fieldAt(unit().fields, offset);
    const each = unit().fields[found];
    tip.replaceChildren(...(each
      ? [element("strong", {}, each.field), ` = ${clip(valueOf(each), 120)}`, element("br"),
        element("span", { class: "faint" }, `${hex(each.start)}, ${size(each.end - each.start)}, ${each.rule} ${model.rules[each.rule]?.title ?? ""}`)]
      : [element("span", { class: "faint" }, `${hex(offset)}: no field`)]));
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${event.clientY + 18}px`;
  }

  /** @param {number} factor @param {number} [middle] */
  function zoom(factor, middle = pin) {
    const part = clamp((middle - from) / length, 0, 1);
    length = clamp(length * factor, Math.min(16, unit().bytes), Math.max(unit().bytes, 1));
    from = clamp(middle - part * length, 0, Math.max(unit().bytes - length, 0));
    redraw();
  }

  function all() {
    from = 0;
    length = Math.max(unit().bytes, 1);
    redraw();
  }

  /** @param {number} by */
  function slide(by) {
    from = clamp(from + by, 0, Math.max(unit().bytes - length, 0));
    redraw();
  }

  /** Goes to the next field, or the one before. @param {number} by */
  function step(by) {
    const fields = unit().fields;
    const found = lastBefore(fields, pin) + by;
    if (found >= 0 && found < fields.length) pinTo(fields[found].start, true);
  }

  /** @param {number} to @param {boolean} bring whether the window is moved so that it shows the byte */
  function pinTo(to, bring) {
    pin = Math.floor(clamp(to, 0, Math.max(unit().bytes - 1, 0)));
    if (bring && (pin < from || pin >= from + length)) from = clamp(pin - length / 2, 0, Math.max(unit().bytes - length, 0));
    redraw();
    pinned();
    void hexRows();
    moved(current, pin);
  }

  /** @param {number} index @param {number} offset @param {boolean} [focus] */
  function show(index, offset, focus = false) {
    current = clamp(index, 0, model.units.length - 1);
    choice.value = String(current);
    const bytesOf = Math.max(unit().bytes, 1);
    length = Math.min(bytesOf, offset > 0 ? Math.max(256, bytesOf / 64) : bytesOf);
    from = clamp(offset - length / 2, 0, bytesOf - length);
    const kinds = /** @type {Set<string>} */ (new Set(unit().fields.map(kindOf)));
    legend.replaceChildren(...Object.entries(KINDS).filter(([kind]) => kinds.has(kind)).map(([kind, name]) =>
      element("span", {}, element("i", { style: `background:var(--k-${kind})` }), name)),
    ...(unit().broken?.offset === undefined || unit().broken?.offset === null ? []
      : [element("span", {}, element("i", { style: `background:var(--${isUnread(model, unit()) ? "warn" : "bad"})` }), isUnread(model, unit()) ? "the byte at which reading ended" : "the byte that breaks a rule")]));
    pinTo(offset, false);
    if (focus) nearStrip.focus();
  }

  function redraw() {
    if (drawing) return;
    drawing = requestAnimationFrame(() => {
      drawing = 0;
      paint(whole, 0, unit().bytes, true);
      paint(near, from, length, false);
    });
  }

  /** Paints the bytes from `start` on, `count` of them. @param {any} canvas @param {number} start @param {number} count @param {boolean} frame */
  function paint(canvas, start, count, frame) {
    const wide = canvas.clientWidth;
    const high = frame ? 22 : 64;
    if (wide === 0) return;
    const scale = devicePixelRatio || 1;
    canvas.width = wide * scale;
    canvas.height = high * scale;
    canvas.style.height = `${high}px`;
    const out = canvas.getContext("2d");
    out.scale(scale, scale);
    const colors = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, colorOf(`--k-${kind}`)]));
    const line = colorOf("--text");
    const fields = unit().fields;
    const pixels = wide / Math.max(count, 1);
    out.fillStyle = colors.none;
    out.fillRect(0, 0, wide, high);
    // Of the fields that are narrower than a pixel, only the first in each column is painted.
    let column = -1;
    for (let index = Math.max(lastBefore(fields, start), 0); index < fields.length && fields[index].start < start + count; index += 1) {
      const each = fields[index];
      const left = (each.start - start) * pixels;
      const right = (each.end - start) * pixels;
      if (right - left < 1 && Math.floor(left) === column) {
        const next = start + (column + 1) / pixels;
        index = Math.max(index, lastBefore(fields, next) - 1);
        continue;
      }
      column = Math.floor(left);
      out.fillStyle = colors[kindOf(each)];
      out.fillRect(left, 0, Math.max(right - left, 1), high);
      if (right - left > 5 && !frame) {
        out.fillStyle = line;
        out.fillRect(right - 0.5, 0, 0.5, high);
      }
      if (right - left > 46 && !frame) label(out, each, Math.max(left, 0), Math.min(right, wide), high);
    }
    const broken = unit().broken?.offset;
    if (typeof broken === "number") {
      out.fillStyle = colorOf(isUnread(model, unit()) ? "--warn" : "--bad");
      out.fillRect((broken - start) * pixels, 0, Math.max(pixels, 3), high);
    }
    const at = (pin - start) * pixels;
    out.strokeStyle = out.fillStyle = colorOf("--text");
    out.lineWidth = 2;
    if (pixels >= 6) out.strokeRect(at, 1, pixels, high - 2);
    else {
      // A byte of a few pixels stays visible between two arrows.
      const middle = Math.min(Math.max(at + pixels / 2, 5), wide - 5);
      for (const [base, top] of [[0, 7], [high, high - 7]]) {
        out.beginPath();
        out.moveTo(middle - 5, base);
        out.lineTo(middle + 5, base);
        out.lineTo(middle, top);
        out.fill();
      }
    }
    if (frame && length < unit().bytes) {
      out.strokeStyle = colorOf("--accent");
      out.strokeRect(from * pixels + 1, 1, Math.max(length * pixels - 2, 3), high - 2);
    }
  }

  /** Writes the name and the value of a field into its box. @param {any} out @param {any} each @param {number} left @param {number} right @param {number} high */
  function label(out, each, left, right, high) {
    out.save();
    out.beginPath();
    out.rect(left, 0, right - left - 3, high);
    out.clip();
    out.fillStyle = colorOf("--text");
    out.font = `11px ${colorOf("--sans")}`;
    out.fillText(each.field.split(".").pop(), left + 4, high / 2 - 5);
    out.fillText(clip(valueOf(each), 60), left + 4, high / 2 + 11);
    out.restore();
  }

  /** Shows the field of the pinned byte, and its rule. */
  function pinned() {
    const each = unit().fields[fieldAt(unit().fields, pin)];
    const start = unit().offset;
    const inFile = typeof start === "number" && start > 0 ? `, ${hex(start + pin)} in the file` : start === null ? ", of unpacked bytes" : "";
    nearStrip.setAttribute("aria-valuemax", String(Math.max(unit().bytes - 1, 0)));
    nearStrip.setAttribute("aria-valuenow", String(pin));
    const line = each ? `${hex(pin)}, ${each.field} = ${clip(valueOf(each), 60)}` : `${hex(pin)}, no field`;
    nearStrip.setAttribute("aria-valuetext", line);
    said.textContent = document.activeElement === bytes ? line : "";
    const broken = unit().broken;
    const isBroken = broken !== null && broken.offset === pin;
    const pairs = each ? [["field", each.field], ["value", clip(valueOf(each), 600)], ["bytes", `${hex(each.start)} to ${hex(each.end - 1)}, ${size(each.end - each.start)}`]] : [];
    const after = unit().left_out_from;
    field.replaceChildren(
      element("h3", {}, `Byte ${hex(pin)}`, element("span", { class: "faint" }, inFile)),
      ...(isBroken ? [element("div", { class: `note ${isUnread(model, unit()) ? "warn" : "bad"}` }, element("strong", {}, isUnread(model, unit()) ? "Reading ended at this byte: " : "This byte breaks a rule: "), sentence(broken.message), ` [${broken.rule}]`), ruleText(model, broken.rule, true)] : []),
      ...(each ? [element("dl", {}, pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", { class: name === "value" ? "mono" : null }, value)])), ruleText(model, each.rule)] : []),
      ...(each || isBroken ? [] : [element("p", { class: "faint" }, noField(after))]));
  }

  /** @param {number | undefined} after */
  function noField(after) {
    if (after === 0) return "The page has no fields of this part, because the part is too large. The command line lists them: tvmspec dump.";
    if (after !== undefined && pin >= after) return "The list of fields ends before this byte, because the file has too many.";
    if (isUnread(model, unit())) return "No field covers this byte: reading ended at a module of an unknown kind.";
    if (unit().format === "whole file" && model.units.length > 1) return "No field covers this byte: it belongs to the container or to compiled code. The other parts have fields.";
    if (unit().broken) return "No field covers this byte: reading ended at the broken rule.";
    if (unit().fields.length === 0) return "This part has no binary fields of TVM.";
    return "No field covers this byte.";
  }

  /** Returns the number of bytes of a row. */
  function columns() {
    return bytes.clientWidth > 0 && bytes.clientWidth < 520 ? 8 : 16;
  }

  async function hexRows() {
    const row = columns();
    const first = Math.max(Math.floor(pin / row) - Math.floor(ROWS / 3), 0) * row;
    const [asked, wanted] = [current, pin];
    const end = Math.min(first + row * ROWS, unit().bytes);
    /** @type {Uint8Array} */
    let content;
    try {
      content = await model.read(current, first, end);
    } catch (error) {
      bytes.replaceChildren(element("p", { class: "faint" }, error instanceof Error ? error.message : String(error)));
      return;
    }
    // Another place may have been pinned while the bytes were read.
    if (asked !== current || wanted !== pin) return;
    const broken = unit().broken?.offset;
    const rows = [];
    for (let start = 0; start < content.length; start += row) {
      const line = element("div", {}, element("span", { class: "at" }, (first + start).toString(16).padStart(6, "0")));
      let text = "";
      for (let at = start; at < start + row; at += 1) {
        if (at >= content.length) { line.append(element("span", { style: "padding:0 .28em" }, "  ")); continue; }
        const offset = first + at;
        const found = fieldAt(unit().fields, offset);
        const kind = found < 0 ? "none" : kindOf(unit().fields[found]);
        const classes = [offset === pin ? "pin" : "", offset === broken ? isUnread(model, unit()) ? "unread" : "broken" : ""].join(" ").trim();
        line.append(element("span", { "data-at": offset, class: classes || null, style: kind === "none" ? null : `background:var(--k-${kind})` },
          content[at].toString(16).padStart(2, "0")));
        text += content[at] >= 32 && content[at] < 127 ? String.fromCharCode(content[at]) : ".";
      }
      line.append(element("span", { class: "text" }, text));
      rows.push(line);
    }
    bytes.replaceChildren(...(rows.length > 0 ? rows : [element("p", { class: "faint" }, "The file is empty.")]));
  }

  return { node, show };
}

/** @param {number} value @param {number} low @param {number} high */
function clamp(value, low, high) {
  return Math.min(Math.max(value, low), Math.max(high, low));
}

/** Returns the value of a field. That of a count begins with a colon in the text of `dump`. @param {import("./model.js").Field} field */
function valueOf(field) {
  return field.value.replace(/^: /, "");
}

/** @param {string} text @param {number} most */
function clip(text, most) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Returns the name of a unit without the name of the file, which the page shows above. @param {import("./model.js").Model} model @param {import("./model.js").Unit} unit */
function shortName(model, unit) {
  return unit.name.startsWith(model.name) ? unit.name.slice(model.name.length).replace(/^, /, "") || "file" : unit.name;
}
