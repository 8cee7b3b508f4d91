// Unpacks LZMA (the format `.lzma`). The WebAssembly is a fifth smaller in it than in the formats that browsers unpack themselves.

/** Adaptive bit models, each the probability of a zero in 2048 parts. @param {number} count */
const bitModels = (count) => new Uint16Array(count).fill(1024);

/**
 * @param {Uint8Array} input a header of 13 bytes (properties, dictionary, length) and a stream of known length
 * @returns {Uint8Array}
 */
export function unpackLzma(input) {
  const header = new DataView(input.buffer, input.byteOffset, 13);
  const properties = header.getUint8(0);
  const literalContext = properties % 9;
  const literalPosition = Math.floor(properties / 9) % 5;
  const positionMask = (1 << Math.floor(properties / 45)) - 1;
  const output = new Uint8Array(Number(header.getBigUint64(5, true)));

  // The range decoder. Its first byte is always zero.
  let at = 18;
  let range = 0xffffffff;
  let code = new DataView(input.buffer, input.byteOffset, 18).getUint32(14);
  const normalize = () => {
    if (range >= 0x1000000) return;
    range = (range << 8) >>> 0;
    code = ((code << 8) | input[at]) >>> 0;
    at += 1;
  };
  /** @param {Uint16Array} models @param {number} index */
  const bit = (models, index) => {
    const bound = (range >>> 11) * models[index];
    let found = 0;
    if (code < bound) {
      range = bound;
      models[index] += (2048 - models[index]) >> 5;
    } else {
      range -= bound;
      code -= bound;
      models[index] -= models[index] >> 5;
      found = 1;
    }
    normalize();
    return found;
  };
  /** Bits from the highest on, by a tree of models. @param {Uint16Array} models @param {number} count @param {number} base */
  const tree = (models, count, base) => {
    let node = 1;
    for (let left = count; left > 0; left -= 1) node = (node << 1) | bit(models, base + node);
    return node - (1 << count);
  };
  /** Bits from the lowest on. @param {Uint16Array} models @param {number} count @param {number} base */
  const reverse = (models, count, base) => {
    let [node, value] = [1, 0];
    for (let place = 0; place < count; place += 1) {
      const found = bit(models, base + node);
      node = (node << 1) | found;
      value |= found << place;
    }
    return value;
  };
  /** Bits of equal probability. @param {number} count */
  const direct = (count) => {
    let value = 0;
    for (let left = count; left > 0; left -= 1) {
      range = range >>> 1;
      const found = code >= range ? 1 : 0;
      if (found) code -= range;
      value = value * 2 + found;
      normalize();
    }
    return value;
  };
  const lengths = () => ({ choice: bitModels(2), low: bitModels(16 << 3), middle: bitModels(16 << 3), high: bitModels(256) });
  /** @param {ReturnType<typeof lengths>} models @param {number} position */
  const length = (models, position) => {
    if (!bit(models.choice, 0)) return 2 + tree(models.low, 3, position << 3);
    if (!bit(models.choice, 1)) return 10 + tree(models.middle, 3, position << 3);
    return 18 + tree(models.high, 8, 0);
  };

  const literals = bitModels(0x300 << (literalContext + literalPosition));
  const isMatch = bitModels(12 << 4);
  const isRepeat = bitModels(12);
  const isRepeat0 = bitModels(12);
  const isRepeat0Long = bitModels(12 << 4);
  const isRepeat1 = bitModels(12);
  const isRepeat2 = bitModels(12);
  const slots = bitModels(4 << 6);
  const special = bitModels(128);
  const align = bitModels(16);
  const [matchLengths, repeatLengths] = [lengths(), lengths()];
  let [state, rep0, rep1, rep2, rep3] = [0, 0, 0, 0, 0];
  let to = 0;

  /** @param {number} slot */
  const distance = (slot) => {
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const base = (2 | (slot & 1)) << bits;
    if (slot < 14) return base + reverse(special, bits, base - slot);
    return (base >>> 0) + direct(bits - 4) * 16 + reverse(align, 4, 0);
  };

  while (to < output.length) {
    const position = to & positionMask;
    if (!bit(isMatch, (state << 4) + position)) {
      const before = to > 0 ? output[to - 1] : 0;
      const base = 0x300 * (((to & ((1 << literalPosition) - 1)) << literalContext) + (before >> (8 - literalContext)));
      let symbol = 1;
      if (state >= 7) {
        // After a match, the next byte is unlikely to equal the byte at the same distance.
        let expected = output[to - rep0 - 1];
        while (symbol < 0x100) {
          const likely = (expected >> 7) & 1;
          expected <<= 1;
          const found = bit(literals, base + ((1 + likely) << 8) + symbol);
          symbol = (symbol << 1) | found;
          if (likely !== found) break;
        }
      }
      while (symbol < 0x100) symbol = (symbol << 1) | bit(literals, base + symbol);
      output[to] = symbol & 0xff;
      to += 1;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count;
    if (bit(isRepeat, state)) {
      if (!bit(isRepeat0, state)) {
        if (!bit(isRepeat0Long, (state << 4) + position)) {
          state = state < 7 ? 9 : 11;
          output[to] = output[to - rep0 - 1];
          to += 1;
          continue;
        }
      } else {
        let chosen;
        if (!bit(isRepeat1, state)) chosen = rep1;
        else {
          if (!bit(isRepeat2, state)) chosen = rep2;
          else [chosen, rep3] = [rep3, rep2];
          rep2 = rep1;
        }
        [rep1, rep0] = [rep0, chosen];
      }
      count = length(repeatLengths, position);
      state = state < 7 ? 8 : 11;
    } else {
      [rep3, rep2, rep1] = [rep2, rep1, rep0];
      count = length(matchLengths, position);
      state = state < 7 ? 7 : 10;
      rep0 = distance(tree(slots, 6, Math.min(count - 2, 3) << 6));
    }
    if (rep0 >= to) throw new Error("the page is damaged: load it again");
    for (const end = Math.min(to + count, output.length); to < end; to += 1) output[to] = output[to - rep0 - 1];
  }
  return output;
}
