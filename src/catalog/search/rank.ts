// §25.3: ranks tools for a query by BM25. Only tools that the caller may see take part, so that the ranking reveals nothing about
// other tools.

import { computeOnce } from '../../platform/bounded-map.ts';
import type { Turns } from '../../platform/clock.ts';
import { isObject } from '../../platform/json.ts';
import type { Entry } from '../prepare-list.ts';

/** Maximum length of a query, in characters: the rest is ignored. */
export const MAX_QUERY = 500;
/** Values that say little about the tool: e-mail addresses, URLs and quoted text. */
const VALUES = /\S{1,200}@\S{1,200}|https?:\/\/\S{1,400}|"[^"]{0,400}"|“[^”]{0,400}”/g;
/** Maximum number of terms of a query: the first ones are used. */
const MAX_TERMS = 32;
/** How quickly repetitions of a term stop adding to the score (`k1` of BM25). */
const SATURATION = 1.65;
/** The weight of a synonym relative to the query's own term. */
const OTHER_WORD = 0.8;

interface QueryTerm {
  readonly hash: number;
  readonly share: number;
}

/** For each term, the term and its meanings: only the alternative with the highest score counts. */
type Query = readonly (readonly QueryTerm[])[];

export function readQuery(text: string): Query {
  const terms = listTerms(text.slice(0, MAX_QUERY).replace(VALUES, ' ')).flatMap((term) => [
    term,
    // The words that an abbreviation stands for, in addition to itself.
    ...(spelledOut.get(term) ?? NONE),
  ]);
  return [...new Set(terms)]
    .slice(0, MAX_TERMS)
    .map((term) => [
      { hash: hashTerm(term), share: 1 },
      ...listMeanings(term).map((meaning) => ({ hash: hashTerm(meaning), share: OTHER_WORD })),
    ]);
}

/** Returns the matching tools, best first; ties keep the order of the list. Yields to other requests between terms. */
export async function rank(
  query: Query,
  entries: readonly Entry[],
  work: Turns,
): Promise<readonly Entry[]> {
  const documents: Document[] = [];
  for (const entry of entries) {
    documents.push(getDocument(entry));
    if (work.isOver()) await work.next();
  }
  const scores = new Float64Array(entries.length);
  for (const alternatives of query) {
    addScores(scores, alternatives, documents);
    if (work.isOver()) await work.next();
  }
  const found: number[] = [];
  for (const [at, score] of scores.entries()) if (score > 0) found.push(at);
  return found
    .sort((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0) || one - other)
    .flatMap((at) => entries[at] ?? []);
}

function addScores(
  scores: Float64Array,
  alternatives: readonly QueryTerm[],
  documents: readonly Document[],
): void {
  const best = new Float64Array(documents.length);
  const weights = new Float64Array(documents.length);
  for (const { hash, share } of alternatives) {
    let count = 0;
    for (let at = 0; at < documents.length; at += 1) {
      const document = documents[at];
      const weight = document === undefined ? 0 : findWeight(document, hash);
      const saturated = weight / (weight + SATURATION);
      weights[at] = saturated;
      count += saturated;
    }
    if (count === 0) continue;
    const rarity = share * Math.log(1 + (documents.length - count + 0.5) / (count + 0.5));
    for (let at = 0; at < documents.length; at += 1) {
      const score = rarity * (weights[at] ?? 0);
      if (score > (best[at] ?? 0)) best[at] = score;
    }
  }
  for (let at = 0; at < documents.length; at += 1) scores[at] = (scores[at] ?? 0) + (best[at] ?? 0);
}

// §25.3: the search document of a tool: the weight of each term.

/**
 * The hashes of the tool's terms, ascending, and the weight of each at the same index. About 500 bytes, next to a much larger
 * entry.
 */
interface Document {
  readonly hashes: Uint32Array;
  readonly weights: Float32Array;
}

/** A part of a tool's definition. */
interface Part {
  /** The weight of each occurrence if the part has `length` terms. */
  readonly weight: number;
  /** The typical number of terms. */
  readonly length: number;
  /** The penalty for longer parts: 0 to 1 (`b` of BM25F). */
  readonly penalty: number;
  list(entry: Entry): readonly string[];
}

const PARTS: readonly Part[] = [
  { weight: 7.5, length: 3, penalty: 0.2, list: ({ ownName }) => listNameTerms(ownName) },
  { weight: 8, length: 1, penalty: 0, list: ({ server }) => listTerms(server) },
  { weight: 1.5, length: 3, penalty: 0.4, list: ({ item }) => listTerms(readText(item.title)) },
  {
    weight: 1.3,
    length: 9,
    penalty: 0.5,
    list: ({ item }) => listTerms(takeSummary(readText(item.description))),
  },
  {
    weight: 0.8,
    length: 30,
    penalty: 0.7,
    list: ({ item }) => listTerms(readText(item.description)),
  },
  {
    weight: 0.3,
    length: 6,
    penalty: 0.6,
    list: ({ item }) => listParams(item.inputSchema).flatMap(listNameTerms),
  },
];

const readText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Maximum number of argument names that are used. */
const MAX_PARAMS = 100;

/** Memoized for as long as the list with the entry exists: the document does not depend on the caller. */
const getDocument = computeOnce((entry: Entry): Document => {
  const weights = new Map<number, number>();
  for (const { weight, length, penalty, list } of PARTS) {
    const terms = list(entry);
    const each = weight / (1 - penalty + (penalty * terms.length) / length);
    for (const term of terms) {
      for (const said of [term, ...listMeanings(term)]) {
        const hash = hashTerm(said);
        weights.set(hash, (weights.get(hash) ?? 0) + each);
      }
    }
  }
  const sorted = [...weights].sort(([one], [other]) => one - other);
  return {
    hashes: Uint32Array.from(sorted, ([hash]) => hash),
    weights: Float32Array.from(sorted, ([, weight]) => weight),
  };
});

/** The first sentence says what a tool does; the others say when and how. */
function takeSummary(text: string): string {
  const start = text.trimStart();
  const end = start.search(/[.!?](?:\s|$)|\n/);
  return end === -1 ? start : start.slice(0, end);
}

const listParams = (schema: unknown): readonly string[] =>
  isObject(schema) && isObject(schema.properties)
    ? Object.keys(schema.properties).slice(0, MAX_PARAMS)
    : [];

/** FNV-1a. Terms with the same hash count as one term, which is rare and harmless. */
function hashTerm(term: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < term.length; at += 1) {
    hash = Math.imul(hash ^ term.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}

/** The weight of the term in the tool; 0 if absent. */
function findWeight({ hashes, weights }: Document, hash: number): number {
  let low = 0;
  let high = hashes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((hashes[middle] ?? 0) < hash) low = middle + 1;
    else high = middle;
  }
  return hashes[low] === hash ? (weights[low] ?? 0) : 0;
}

// §25.3: splits text into search terms: words without their endings.

/** Maximum length of one text, in characters: the rest is ignored, so a longer text costs no more. */
const MAX_TEXT = 2_048;
/** Maximum characters of a word. */
const MAX_WORD = 40;

/** The terms in order, with repetitions. In scripts without spaces, such as Chinese and Japanese, each character is a term. */
export function listTerms(text: string): readonly string[] {
  const read = text.slice(0, MAX_TEXT);
  // Nearly all text is ASCII, which is processed ten times as fast.
  const words = NOT_ASCII.test(read)
    ? read.normalize('NFKC').toLowerCase().match(WORDS)
    : read.toLowerCase().match(ASCII_WORDS);
  return (words ?? []).flatMap((word) =>
    STOP_WORDS.has(word) ? [] : [stem(word.slice(0, MAX_WORD))],
  );
}

/** The terms of a name such as `listPullRequests` or `list_pull_requests`: its parts, and the whole name if it is one word. */
export function listNameTerms(name: string): readonly string[] {
  const parts = name.slice(0, MAX_TEXT).replace(HUMP, '$1 $2');
  return parts === name ? listTerms(name) : [...listTerms(parts), ...listTerms(name)];
}

const NOT_ASCII = /[^\p{ASCII}]/u;
const ASCII_WORDS = /[a-z0-9]+/g;
const SPACELESS =
  '\\p{sc=Han}\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmr}\\p{sc=Mymr}';
const WORDS = new RegExp(`[${SPACELESS}]|(?:(?![${SPACELESS}])[\\p{L}\\p{M}\\p{N}])+`, 'gu');
const HUMP = /(\p{Ll}|\p{N})(\p{Lu})/gu;

/** English words that say nothing about the purpose of a tool. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about again already also an and another any are as at be been before both but by can could did do does each else for from had
   has have he her here his how i if in into is it its just let like may me more most must my no not now of off on once one only
   or other our out own per please s same she should so some still such t than that the their them then there these they this
   those through to too up us use used uses using very via want wants was we were what when where which while who whose why will
   with within without would you your`.split(/\s+/),
);

/**
 * Removes English endings, so that `creates`, `creating` and `creation` become the same term. The result may not be a word.
 */
function stem(word: string): string {
  if (word.length <= 3 || !ENGLISH.test(word)) return word;
  return dropFinalE(dropEnding(dropPlural(word)));
}

const ENGLISH = /^[a-z]+$/;
/** Short words keep `-er`, such as `user` and `order`. */
const ENDING = /^(.{3,})(?:ing|ed)$|^(.{5,})er$/;
const VOWEL = /[aeiouy]/;
const DOUBLED = /([bdfgmnprt])\1$/;

function dropPlural(word: string): string {
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(?:ss|x|ch|sh|zz)es$/.test(word)) return word.slice(0, -2);
  return /[^sui]s$/.test(word) ? word.slice(0, -1) : word;
}

function dropEnding(word: string): string {
  if (/[ts]ion$/.test(word) && word.length > 6) return word.slice(0, -3);
  const [, plain, agent] = ENDING.exec(word) ?? [];
  const rest = plain ?? agent ?? '';
  if (!VOWEL.test(rest)) return word;
  return DOUBLED.test(rest) ? rest.slice(0, -1) : rest;
}

const dropFinalE = (word: string): string =>
  word.length > 3 && word.endsWith('e') ? word.slice(0, -1) : word;

// §25.3: synonyms used by people and tools: "cancel a meeting" finds `delete-event`.

/** Each line is one meaning. A word may have several meanings. */
const MEANINGS = `
create add new make insert compose write generate open
delete remove erase drop cancel forget clear discard uninstall unset
update edit change modify alter adjust set patch replace rewrite mark
get show read retrieve fetch view display see give return tell
find search look lookup query locate
list all every which browse
move transfer relocate rename transition
send post submit deliver publish
save write store overwrite
start run launch execute trigger begin
stop end finish halt terminate
close complete done resolve finish
copy clone duplicate fork
compare diff difference
attach upload attachment
reply respond answer response
undo revert rollback restore
approve accept confirm
decline reject refuse
invite invitation attendee guest
watch follow subscribe
assign assignee owner responsible
depend dependency block prerequisite
connect link relate associate relation association
event meeting appointment invitation agenda schedule
free busy available availability
due deadline overdue
email mail inbox
message text chat
thread conversation discussion
channel room
react reaction emoji
issue ticket bug defect story
task todo
sprint iteration
user member person people colleague teammate profile
contact company deal lead customer object
permission access restriction right allow
folder directory
file document yaml json txt md csv pdf
record row entry
field column property attribute
database table sql schema
comment remark feedback note
image picture photo screenshot
page article wiki
log history worklog
status state transition progress
label tag
version release revision
commit sha revision
website site web internet url link
navigate visit go
type enter input fill
click press tap
place location restaurant shop business
drive walk travel route direction distance duration
address coordinate
documentation docs manual guide reference
library package module
kubernetes pod container namespace cluster deployment
host machine node
metric usage measure cpu
monitor alert alarm
incident outage downtime maintenance
trace latency slow performance
error failure exception
chart graph plot diagram
payment charge invoice
remember memory
contain content
build pipeline workflow job ci
password secret credential
bucket storage blob
function lambda
price cost billing
order purchase
book reserve booking reservation
call phone
`;

/** Abbreviations, and the words that they stand for. */
const SPELLED_OUT: Readonly<Record<string, readonly string[]>> = {
  cpu: ['metric'],
  db: ['database'],
  dir: ['directory'],
  docs: ['documentation'],
  k8s: ['kubernetes'],
  mr: ['merge', 'request'],
  msg: ['message'],
  pr: ['pull', 'request'],
  prs: ['pull', 'request'],
  repo: ['repository'],
  repos: ['repository'],
};

const meanings = new Map<string, string[]>();
for (const [at, line] of MEANINGS.trim().split('\n').entries()) {
  for (const word of line.split(' ')) {
    const known = meanings.get(stem(word)) ?? [];
    // The mark makes meanings distinct from every term of the text.
    meanings.set(stem(word), [...known, `=${at}`]);
  }
}

const spelledOut = new Map(
  Object.entries(SPELLED_OUT).map(([short, words]) => [short, words.map(stem)]),
);

/** The meanings of a term as separate terms, which documents with a synonym contain as well. */
const listMeanings = (term: string): readonly string[] => meanings.get(term) ?? NONE;

const NONE: readonly string[] = [];
