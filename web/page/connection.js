// Shows the messages of an RPC connection.
import { element, hex, table } from "./dom.js";

/** Messages that are shown. */
const MOST_MESSAGES = 2000;

/**
 * @param {any} connection the answer of `rpc-decode`
 * @param {(unit: number, offset: number) => void} go shows a byte on the map
 */
export function connectionView(connection, go) {
  const rows = [];
  const [client, server] = [connection.client?.messages ?? [], connection.server?.messages ?? []];
  for (let at = 0; at < Math.max(client.length, server.length) && rows.length < MOST_MESSAGES; at += 1) {
    for (const [speaker, messages] of /** @type {[string, any[]][]} */ ([["client", client], ["server", server]])) {
      const each = messages[at];
      if (each) rows.push([speaker, element("button", { type: "button", class: "link", onclick: () => go(speaker === "client" ? 0 : 1, each.start) }, hex(each.start)), element("code", {}, JSON.stringify(each.message).slice(0, 400))]);
    }
  }
  const broken = [["client", connection.client?.broken], ["server", connection.server?.broken]].filter(([, each]) => each);
  const releases = [connection.releases].flat().join(" to ");
  return element("div", {},
    element("p", {}, `Spoken as in tvm ${releases}.`),
    broken.map(([speaker, each]) => element("div", { class: "note bad" }, element("strong", {}, `The ${speaker} breaks a rule: `), `${each.message} [${each.rule}]`)),
    table(["by", "at#", "message"], rows),
    client.length + server.length > rows.length ? element("p", { class: "faint" }, `The first ${rows.length} of ${client.length + server.length} messages are shown.`) : null);
}
