// §26.4: other texts that readers make of one before they act on it: JSON within a text, addresses, Markdown, HTML.

export type ReadText = (text: string) => string;

const unescapeJson: ReadText = (text) =>
  text.replace(/\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))/g, (_, letter: string | undefined, code) =>
    letter === undefined ? toCharacter(code, 16) : (JSON_LETTERS[letter] ?? letter),
  );

const JSON_LETTERS: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

const decodePercent: ReadText = (text) =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) =>
    Buffer.from(encoded.replaceAll('%', ''), 'hex').toString(),
  );

/** CommonMark "Backslash escapes". */
const unescapeMarkdown: ReadText = (text) => text.replace(/\\([!-/:-@[-`{-~])/g, '$1');

/** Reads each by its number, or by its name where it is one of ASCII. */
const decodeHtml: ReadText = (text) =>
  text.replace(CHARACTER, (_, decimal, hex, name, old) => {
    if (decimal !== undefined) return toCharacter(decimal, 10);
    return hex === undefined ? (NAMES[name ?? old] ?? '') : toCharacter(hex, 16);
  });

const toCharacter = (digits: string, base: number): string => {
  const code = Number.parseInt(digits, base);
  return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
};

/** Names of characters in HTML, which have one case: what no browser reads hides nothing. */
const NAMES: Readonly<Record<string, string>> = {
  Tab: '\t',
  NewLine: '\n',
  excl: '!',
  quot: '"',
  QUOT: '"',
  num: '#',
  dollar: '$',
  percnt: '%',
  amp: '&',
  AMP: '&',
  apos: "'",
  lpar: '(',
  rpar: ')',
  ast: '*',
  midast: '*',
  plus: '+',
  comma: ',',
  period: '.',
  sol: '/',
  colon: ':',
  semi: ';',
  lt: '<',
  LT: '<',
  equals: '=',
  gt: '>',
  GT: '>',
  quest: '?',
  commat: '@',
  lsqb: '[',
  lbrack: '[',
  bsol: '\\',
  rsqb: ']',
  rbrack: ']',
  Hat: '^',
  lowbar: '_',
  UnderBar: '_',
  grave: '`',
  DiacriticalGrave: '`',
  lcub: '{',
  lbrace: '{',
  verbar: '|',
  vert: '|',
  VerticalLine: '|',
  rcub: '}',
  rbrace: '}',
  fjlig: 'fj',
};
/** Some names of old are read without a semicolon. */
const CHARACTER = new RegExp(
  `&(?:#0*(\\d{1,7});?|#[xX]0*([0-9a-fA-F]{1,6});?|(${Object.keys(NAMES).join('|')});|(amp|AMP|lt|LT|gt|GT|quot|QUOT))`,
  'g',
);

export interface Reading {
  readonly text: string;
  readonly read: ReadText;
}

/**
 * Each text that comes of it by one reader, or by two in a row, and is another; undefined for one that is none, so that others may
 * have their turn. `last` is what whoever reads it does at the end.
 */
export function* listReadings(text: string, last?: ReadText): Generator<Reading | undefined, void> {
  const seen = new Set([text]);

  function* list(reading: string, read: ReadText): Generator<Reading | undefined, void> {
    yield note(reading, read);
    if (last !== undefined) yield note(last(reading), join(read, last));
  }

  function note(reading: string, read: ReadText): Reading | undefined {
    if (seen.has(reading)) return undefined;
    seen.add(reading);
    return { text: reading, read };
  }

  if (last !== undefined) yield note(last(text), last);
  if (!ESCAPE.test(text)) return;
  for (const first of READERS) {
    const once = first(text);
    if (once === text) continue;
    yield* list(once, first);
    for (const second of READERS) yield* list(second(once), join(first, second));
  }
}

const READERS: readonly ReadText[] = [unescapeJson, decodePercent, unescapeMarkdown, decodeHtml];
const ESCAPE = /[\\%&]/;

const join =
  (first: ReadText, second: ReadText): ReadText =>
  (text) =>
    second(first(text));
