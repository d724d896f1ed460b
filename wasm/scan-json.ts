// Finds the members of a JSON object in its bytes, 16 or 64 at a time. Written in AssemblyScript: TypeScript with the types of
// WebAssembly. src/platform/scan/scan-json.ts says what it is for, and calls what `npm run wasm` makes of it.
//
// Positions are addresses in the memory, and only grow. Some is read behind the end before it is known to stand there, never
// more than 128 bytes: it cannot become a part of the object, since one is only accepted that ends exactly at its end.

// The memory: where each member stands, what closes each array and object around, where the parts of lists stand, and from 8192 on
// the text.
const TABLE: usize = 0;
/** The name's first byte and the one behind it, and those of the value. */
const MEMBER_BYTES: usize = 16;
const MAX_MEMBERS: usize = 64;
const CLOSERS: usize = 1024;
const MAX_LEVELS: usize = 100;
/** How many parts are known; NONE where they are not all in the table. */
const PARTS_COUNT: usize = 1148;
/** As members have them; the name of an entry of a list is from NOWHERE to NOWHERE. */
const PARTS: usize = 1152;
/** What has no room any more is put here, one over the other. */
const LAST_PART: usize = 8176;

const NONE: i32 = -1;
/** In place of an address. */
const NOWHERE: usize = 0;

const SPACE: u8 = 0x20;
const QUOTE: u8 = 0x22;
const PLUS: u8 = 0x2b;
const COMMA: u8 = 0x2c;
const MINUS: u8 = 0x2d;
const POINT: u8 = 0x2e;
const COLON: u8 = 0x3a;
const BACKSLASH: u8 = 0x5c;
const OPEN_ARRAY: u8 = 0x5b;
const OPEN_OBJECT: u8 = 0x7b;
const CLOSE_ARRAY: u8 = 0x5d;
const CLOSE_OBJECT: u8 = 0x7d;

/**
 * Lists are arrays that are members of the object itself. Their parts are their entries, each with the members of its own behind
 * it if it is an object.
 *
 * How many members the object from `start` to `end` has, which then stand in the table. NONE for what is no object of RFC 8259,
 * and for what has better be parsed: control characters anywhere, a string that begins with the eight letters of `sought`, more
 * than `maxValues` values, a member of its own whose name is spelled with a backslash, very many levels or own members.
 */
export function scanObject(start: usize, end: usize, sought: u64, maxValues: i32): i32 {
  if (start >= end || load<u8>(start) !== OPEN_OBJECT) return NONE;
  let at = start;
  let level: usize = 0;
  let values: i32 = 0;
  let member = TABLE;
  const tableEnd = TABLE + MAX_MEMBERS * MEMBER_BYTES;
  let isName = false;
  let part = PARTS;
  let entry = PARTS;

  while (at < end) {
    // At a value, or at a name.
    let byte: u8 = load<u8>(at);
    if (isName) {
      if (byte !== QUOTE) return NONE;
      const nameStart = at + 1;
      at = skipString(nameStart, end, sought);
      if (at === NOWHERE) return NONE;
      if (level === 1) {
        if (member === tableEnd || hasBackslash(nameStart, at)) return NONE;
        store<u32>(member, <u32>nameStart);
        store<u32>(member, <u32>at - 1, 4);
      } else if (level === 3 && isInList()) {
        if (hasBackslash(nameStart, at)) part = LAST_PART;
        store<u32>(part, <u32>nameStart);
        store<u32>(part, <u32>at - 1, 4);
      }
      at = skipSpaces(at, end);
      if (load<u8>(at) !== COLON) return NONE;
      at = skipSpaces(at + 1, end);
      if (level === 1) store<u32>(member, <u32>at, 8);
      else if (level === 3) store<u32>(part, <u32>at, 8);
      isName = false;
      continue;
    }
    values += 1;
    if (values > maxValues) return NONE;
    if (level === 2 && isInList()) {
      entry = part;
      store<u32>(entry, NOWHERE);
      store<u32>(entry, NOWHERE, 4);
      store<u32>(entry, <u32>at, 8);
      part = skipPart(part);
    }
    if (byte === QUOTE) {
      at = skipString(at + 1, end, sought);
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (level === MAX_LEVELS) return NONE;
      // In ASCII, what closes either of them is the second one behind it.
      store<u8>(CLOSERS + level, byte + 2);
      level += 1;
      at = skipSpaces(at + 1, end);
      if (load<u8>(at) !== byte + 2) {
        isName = byte === OPEN_OBJECT;
        continue;
      }
      at += 1;
      level -= 1;
    } else {
      at = skipScalar(at, end, byte);
    }
    if (at === NOWHERE) return NONE;

    // Behind a value, which may be the last one of those around it.
    for (;;) {
      if (level === 0) {
        const parts = <i32>((part - PARTS) / MEMBER_BYTES);
        store<i32>(PARTS_COUNT, part === LAST_PART ? NONE : parts);
        return at === end ? <i32>((member - TABLE) / MEMBER_BYTES) : NONE;
      }
      if (at >= end) return NONE;
      if (level === 1) {
        store<u32>(member, <u32>at, 12);
        member += MEMBER_BYTES;
      } else if (level === 2 && isInList()) {
        store<u32>(entry, <u32>at, 12);
      } else if (level === 3 && isInList() && load<u8>(CLOSERS + 2) === CLOSE_OBJECT) {
        store<u32>(part, <u32>at, 12);
        part = skipPart(part);
      }
      at = skipSpaces(at, end);
      byte = load<u8>(at);
      const closer: u8 = load<u8>(CLOSERS + level - 1);
      if (byte === COMMA) {
        at = skipSpaces(at + 1, end);
        isName = closer === CLOSE_OBJECT;
        break;
      }
      if (byte !== closer) return NONE;
      at += 1;
      level -= 1;
    }
  }
  return NONE;
}

/** Of what is two levels deep, or deeper. */
function isInList(): bool {
  return load<u8>(CLOSERS + 1) === CLOSE_ARRAY;
}

function skipPart(part: usize): usize {
  return part === LAST_PART ? part : part + MEMBER_BYTES;
}

// Each of these returns where what follows begins; those that may fail return NOWHERE then.

function skipSpaces(start: usize, end: usize): usize {
  let at = start;
  while (load<u8>(at) === SPACE && at < end) at += 1;
  return at;
}

/** A number, `true`, `false` or `null`. What may stand behind it is for others to say. */
function skipScalar(at: usize, end: usize, first: u8): usize {
  if (first === MINUS || isDigit(first)) return skipNumber(at, end);
  if (load<u32>(at) === TRUE || load<u32>(at) === NULL) return at + 4;
  return load<u32>(at + 1) === ALSE ? (first === F ? at + 5 : NOWHERE) : NOWHERE;
}

// Four letters each, as one number.
const TRUE: u32 = 0x65757274;
const NULL: u32 = 0x6c6c756e;
const ALSE: u32 = 0x65736c61;
const F: u8 = 0x66;

function skipNumber(start: usize, end: usize): usize {
  let at = load<u8>(start) === MINUS ? start + 1 : start;
  const whole = at;
  at = skipDigits(at, end);
  if (at === whole || (at - whole > 1 && load<u8>(whole) === ZERO)) return NOWHERE;
  if (load<u8>(at) === POINT) {
    const fraction = at + 1;
    at = skipDigits(fraction, end);
    if (at === fraction) return NOWHERE;
  }
  if ((load<u8>(at) | LOWER_CASE) === E) {
    const sign: u8 = load<u8>(at + 1);
    const exponent = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    at = skipDigits(exponent, end);
    if (at === exponent) return NOWHERE;
  }
  return at;
}

const ZERO: u8 = 0x30;
const LOWER_CASE: u8 = 0x20;
const E: u8 = 0x65;

function isDigit(byte: u8): bool {
  return byte - ZERO < 10;
}

function skipDigits(start: usize, end: usize): usize {
  let at = start;
  while (at < end && isDigit(load<u8>(at))) at += 1;
  return at;
}

/** From behind the quote that opens it. */
function skipString(start: usize, end: usize, sought: u64): usize {
  if (beginsWith(start, sought)) return NOWHERE;
  // Most strings are short, and nothing is escaped in them.
  const first = v128.load(start);
  const quotes = i8x16.bitmask(i8x16.eq(first, i8x16.splat(QUOTE)));
  if (quotes !== 0) {
    const others = v128.or(
      i8x16.eq(first, i8x16.splat(BACKSLASH)),
      i8x16.lt_u(first, i8x16.splat(SPACE)),
    );
    const before = quotes ^ (quotes - 1);
    if ((i8x16.bitmask(others) & before) === 0) return start + <usize>ctz(quotes) + 1;
  }
  return skipLongString(start, end);
}

/** Whether a string begins with what is sought, however each letter is spelled. */
function beginsWith(start: usize, sought: u64): bool {
  const difference = load<u64>(start) ^ sought;
  if (difference === 0) return true;
  const other = start + <usize>(ctz(difference) >> 3);
  return load<u16>(other) === BACKSLASH_U && isSpelled(start, sought);
}

/** With some letters by their numbers, as in `\u0061`. */
function isSpelled(start: usize, sought: u64): bool {
  let at = start;
  for (let letters = sought; letters !== 0; letters >>>= 8) {
    const letter = <u8>letters;
    if (load<u8>(at) === letter) at += 1;
    else if (load<u32>(at) === BACKSLASH_U00 && readByte(at + 4) === letter) at += 6;
    else return false;
  }
  return true;
}

const U: u8 = 0x75;
const BACKSLASH_U: u16 = 0x755c;
const BACKSLASH_U00: u32 = 0x3030755c;

/** Of two hexadecimal digits; of others it returns anything. */
function readByte(at: usize): u8 {
  return (readDigit(load<u8>(at)) << 4) | readDigit(load<u8>(at + 1));
}

function readDigit(digit: u8): u8 {
  return isDigit(digit) ? digit - ZERO : (digit | LOWER_CASE) - A + 10;
}

/**
 * As `skipString`, by blocks of 64 bytes. Of each kind of byte there is a mask, with a bit for each byte of the block; which
 * quotes are escaped, and what is, is computed for all of them at once, without a branch.
 */
function skipLongString(start: usize, end: usize): usize {
  // Of the block: whether its first byte is escaped, and which of its first bytes have to be hexadecimal digits.
  let carriedEscape: u64 = 0;
  let carriedDigits: u64 = 0;
  for (let at = start; at < end; at += 64) {
    const a = v128.load(at);
    const b = v128.load(at, 16);
    const c = v128.load(at, 32);
    const d = v128.load(at, 48);
    const quotes = maskEqual(a, b, c, d, QUOTE);
    const slashes = maskEqual(a, b, c, d, BACKSLASH);
    let escaped: u64 = 0;
    if ((slashes | carriedEscape) !== 0) {
      // In a run of backslashes each second byte is escaped, and so is what follows a run of odd length. The subtraction
      // borrows along each run, from where it begins.
      const escapes = slashes & ~carriedEscape;
      const marked = (((escapes << 1) | ODD_BITS) - escapes) ^ ODD_BITS;
      escaped = marked ^ (slashes | carriedEscape);
      carriedEscape = (marked & slashes) >>> 63;
    }
    const closing = quotes & ~escaped;
    // Up to the quote that ends the string, or all of the block.
    const inside = closing ^ (closing - 1);
    if (hasControls(a, b, c, d) && (maskControls(a, b, c, d) & inside) !== 0) return NOWHERE;
    if ((escaped | carriedDigits) !== 0) {
      const numbers = escaped & maskEqual(a, b, c, d, U);
      const known = quotes | slashes | numbers | maskEscapable(a, b, c, d);
      if ((escaped & inside & ~known) !== 0) return NOWHERE;
      if ((numbers | carriedDigits) !== 0) {
        const digits =
          (numbers << 1) | (numbers << 2) | (numbers << 3) | (numbers << 4) | carriedDigits;
        if ((digits & inside & ~maskDigits(a, b, c, d)) !== 0) return NOWHERE;
        carriedDigits = (numbers >>> 63) | (numbers >>> 62) | (numbers >>> 61) | (numbers >>> 60);
      }
    }
    if (closing !== 0) return at + <usize>ctz(closing) + 1;
  }
  return NOWHERE;
}

// biome-ignore lint/correctness/noPrecisionLoss: an integer of 64 bits.
const ODD_BITS: u64 = 0xaaaa_aaaa_aaaa_aaaa;

// Masks of the four vectors that are a block.

function maskEqual(a: v128, b: v128, c: v128, d: v128, byte: u8): u64 {
  const all = i8x16.splat(byte);
  return join(i8x16.eq(a, all), i8x16.eq(b, all), i8x16.eq(c, all), i8x16.eq(d, all));
}

function hasControls(a: v128, b: v128, c: v128, d: v128): bool {
  const least = i8x16.min_u(i8x16.min_u(a, b), i8x16.min_u(c, d));
  return v128.any_true(areControls(least));
}

function maskControls(a: v128, b: v128, c: v128, d: v128): u64 {
  return join(areControls(a), areControls(b), areControls(c), areControls(d));
}

function areControls(bytes: v128): v128 {
  return i8x16.lt_u(bytes, i8x16.splat(SPACE));
}

/** What may stand behind a backslash; quote, backslash and `u` aside. */
function maskEscapable(a: v128, b: v128, c: v128, d: v128): u64 {
  return join(areEscapable(a), areEscapable(b), areEscapable(c), areEscapable(d));
}

/** One of the letters is at most where the lower half of its code says: `b`, `t`, `f`, `n`, `/`; and `r` is where `b` would be. */
function areEscapable(bytes: v128): v128 {
  const letters = i8x16(1, 0, 0x62, 0, 0x74, 0, 0x66, 0, 0, 0, 0, 0, 0, 0, 0x6e, 0x2f);
  const known = i8x16.swizzle(letters, v128.and(bytes, i8x16.splat(0x0f)));
  return v128.or(i8x16.eq(bytes, known), i8x16.eq(bytes, i8x16.splat(R)));
}

const R: u8 = 0x72;

/** Hexadecimal ones. */
function maskDigits(a: v128, b: v128, c: v128, d: v128): u64 {
  return join(areDigits(a), areDigits(b), areDigits(c), areDigits(d));
}

function areDigits(bytes: v128): v128 {
  const figures = i8x16.sub(bytes, i8x16.splat(ZERO));
  const letters = i8x16.sub(v128.or(bytes, i8x16.splat(LOWER_CASE)), i8x16.splat(A));
  return v128.or(i8x16.lt_u(figures, i8x16.splat(10)), i8x16.lt_u(letters, i8x16.splat(6)));
}

const A: u8 = 0x61;

function join(a: v128, b: v128, c: v128, d: v128): u64 {
  const low = i8x16.bitmask(a) | (i8x16.bitmask(b) << 16);
  const high = i8x16.bitmask(c) | (i8x16.bitmask(d) << 16);
  return <u64>(<u32>low) | ((<u64>(<u32>high)) << 32);
}

function hasBackslash(start: usize, end: usize): bool {
  for (let at = start; at < end; at += 1) if (load<u8>(at) === BACKSLASH) return true;
  return false;
}
