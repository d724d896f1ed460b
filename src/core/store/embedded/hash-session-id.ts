/** 53 bits (cyrb53): that two of some million sessions have the same is out of the question. */
export function hashSessionId(id: string): number {
  let low = 0xdeadbeef;
  let high = 0x41c6ce57;
  for (let at = 0; at < id.length; at += 1) {
    const code = id.charCodeAt(at);
    low = Math.imul(low ^ code, 2_654_435_761);
    high = Math.imul(high ^ code, 1_597_334_677);
  }
  const mixedLow =
    Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  const mixedHigh =
    Math.imul(high ^ (high >>> 16), 2_246_822_507) ^
    Math.imul(mixedLow ^ (mixedLow >>> 13), 3_266_489_909);
  return 2 ** 32 * (mixedHigh & 0x1fffff) + (mixedLow >>> 0);
}
