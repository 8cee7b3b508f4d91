// Colors for source code of devices: CUDA, OpenCL, Metal, WGSL, C, PTX. One expression finds comments, texts, numbers and words.
import { element } from "./dom.js";

const TOKEN = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|(?![\s\S])))|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(^[ \t]*#[^\n]*|@\w+|\[\[[^\]\n]*\]\])|(\b0[xX][\da-fA-F]+\w*|\b\d[\w.]*(?:[eE][+-]?\d+\w*)?)|(%?[A-Za-z_$][\w$]*|\.[a-zA-Z_]\w*)/gm;

const KEYWORDS = new Set(("__global__ __device__ __shared__ __restrict__ __launch_bounds__ extern static inline const constexpr volatile restrict if else for "
  + "while do switch case default break continue return struct typedef using namespace kernel __kernel __global __local __constant __private device "
  + "threadgroup constant thread template class public fn let var override loop continuing enable storage workgroup read_write uniform private "
  + "define declare target datalayout triple attributes call br ret bra setp mov add mul mad fma ld st cvt cvta bar").split(" "));
const TYPES = /^(?:u?(?:int|long|short|char|half|float|double|bool)\d*(?:x\d+)?(?:_t)?|u?int(?:8|16|32|64)_t|size_t|void|unsigned|signed|half_t|[iuf](?:8|16|32|64)|vec[234]\w*|mat\w*|array|ptr|atomic\w*|texture\w*|sampler\w*|id|nv_bfloat16|__half2?|ushort|uchar|uint|ulong)$/;

/**
 * Splits source code into text nodes and colored elements. The text after `most` characters has no colors.
 * @param {string} text @param {number} [most]
 */
export function highlighted(text, most = 200_000) {
  const out = /** @type {(Node | string)[]} */ ([]);
  const colored = text.slice(0, most);
  let end = 0;
  for (const found of colored.matchAll(TOKEN)) {
    const [token, comment, string, pre, number, word] = found;
    const look = comment !== undefined ? "c" : string !== undefined ? "s" : pre !== undefined ? "p" : number !== undefined ? "n" : lookOf(word ?? "");
    if (look === "") continue;
    out.push(colored.slice(end, found.index), element("span", { class: look }, token));
    end = found.index + token.length;
  }
  out.push(colored.slice(end), text.slice(most));
  return element("code", {}, out);
}

/** @param {string} word */
function lookOf(word) {
  if (KEYWORDS.has(word) || KEYWORDS.has(word.replace(/^\./, "")) && word.startsWith(".")) return "k";
  if (TYPES.test(word) || /^\.[usfb]\d+$/.test(word)) return "t";
  if (/^\.(version|target|address_size|visible|entry|func|param|reg|shared|global|local|const|align|maxntid|minnctapersm|pragma|extern|weak)$/.test(word)) return "p";
  return "";
}
