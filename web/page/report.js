// The page of `inspect --html`: its data are in the page itself.
import { showModel } from "./app.js";
import { withWholeFile } from "./model.js";

const held = JSON.parse(/** @type {any} */ (document.getElementById("data")).textContent);
held.units = withWholeFile(held.name, held.size, held.units, held.verify);

/** Returns the bytes of a unit, if the page contains them. @param {number} unit @param {number} start @param {number} end */
held.read = async (unit, start, end) => {
  const { content, offset } = held.units[unit];
  // A unit at an offset is a part of the file, which the page has once.
  const [stored, from] = typeof content === "string" ? [content, 0] : [held.content, offset];
  if (typeof stored !== "string" || typeof from !== "number") throw new Error("This page does not have the bytes of this part, because they are too many.");
  return Uint8Array.from(atob(stored), (letter) => letter.charCodeAt(0)).slice(from + start, from + end);
};
const showPlace = showModel(document.querySelector("main"), held, new AbortController().signal);
addEventListener("hashchange", showPlace);
