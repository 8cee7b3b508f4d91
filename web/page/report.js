// The page of `inspect --html`: its data are in the page itself.
import { showModel } from "./app.js";

const held = JSON.parse(/** @type {any} */ (document.getElementById("data")).textContent);

/** Returns the bytes of a unit, if the page contains them. @param {number} unit @param {number} start @param {number} end */
held.read = async (unit, start, end) => {
  const { content } = held.units[unit];
  if (typeof content !== "string") throw new Error("the page does not have the bytes");
  return Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0)).slice(start, end);
};
void showModel(document.querySelector("main"), held);
