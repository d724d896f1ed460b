// §25.3: BM25: which tools a query is about. Only tools that the caller may see take part, so that the order tells nothing of
// others.
import type { Turns } from '../../platform/clock.ts';
import { computeOnce } from '../../platform/compute-once.ts';
import { isObject } from '../../platform/json.ts';
import type { Entry } from '../prepare-list.ts';
import { listMeanings, listNameTerms, listTerms, spellOut } from './vocabulary.ts';

/** Characters of a query that are read. */
export const MAX_QUERY = 500;
/** Arguments say little of the tool: addresses, and what stands in quotes. */
const VALUES = /\S{1,200}@\S{1,200}|https?:\/\/\S{1,400}|"[^"]{0,400}"|“[^”]{0,400}”/g;
/** Terms of a query that count, in its order. */
const MAX_TERMS = 32;
/** The point from which more of the same term says nothing new (`k1` of BM25). */
const SATURATION = 1.65;
/** The share of another word of the same meaning. */
const OTHER_WORD = 0.8;

interface QueryTerm {
  readonly hash: number;
  readonly share: number;
}

/** Each is a term, and its meanings: of these, what says most of a tool counts. */
type Query = readonly (readonly QueryTerm[])[];

export function readQuery(text: string): Query {
  const terms = listTerms(text.slice(0, MAX_QUERY).replace(VALUES, ' ')).flatMap((term) => [
    term,
    ...spellOut(term),
  ]);
  return [...new Set(terms)]
    .slice(0, MAX_TERMS)
    .map((term) => [
      { hash: hashTerm(term), share: 1 },
      ...listMeanings(term).map((meaning) => ({ hash: hashTerm(meaning), share: OTHER_WORD })),
    ]);
}

/** Those that the query is about, best first; of equal ones the first in the list. Gives way to others between terms. */
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

// §25.3: one tool as search knows it: how much each term says of it.

/** The hashes of its terms, rising, and the weight of each in the same place. Some 500 bytes, beside an entry of many more. */
interface Document {
  readonly hashes: Uint32Array;
  readonly weights: Float32Array;
}

/** A part of a tool's definition. */
interface Part {
  /** The weight of each place where the part has `length` terms. */
  readonly weight: number;
  /** The usual number of terms. */
  readonly length: number;
  /** The loss of each place in a longer part: 0 to 1 (`b` of BM25F). */
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

/** Names of arguments that are read. */
const MAX_PARAMS = 100;

/** Kept for as long as the list that has the entry: whoever sees it, it is the same. */
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

/** Its first sentence says what a tool does, the others when and how. */
function takeSummary(text: string): string {
  const start = text.trimStart();
  const end = start.search(/[.!?](?:\s|$)|\n/);
  return end === -1 ? start : start.slice(0, end);
}

const listParams = (schema: unknown): readonly string[] =>
  isObject(schema) && isObject(schema.properties)
    ? Object.keys(schema.properties).slice(0, MAX_PARAMS)
    : [];

/** FNV-1a. Two terms with one hash are taken for one, which is seldom, and does no harm. */
function hashTerm(term: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < term.length; at += 1) {
    hash = Math.imul(hash ^ term.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}

/** The weight of the term in the tool; 0 where it is not there. */
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
