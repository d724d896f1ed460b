// §25.3: one tool as search knows it: how much each term says of it.

import { isObject } from '../../platform/json.ts';
import type { Entry } from '../catalog/prepare-list.ts';
import { listNameTerms, listTerms } from './terms.ts';
import { listMeanings } from './vocabulary.ts';

/** The hashes of its terms, rising, and the weight of each in the same place. Some 500 bytes, beside an entry of many more. */
export interface Document {
  readonly hashes: Uint32Array;
  readonly weights: Float32Array;
}

/**
 * How often a term stands in a part of a tool, times this. Of a longer part one place says less: `length` is how many terms
 * are usual, and `penalty` how much that counts (`b` of BM25F).
 */
const FIELDS = {
  name: { weight: 5, length: 3, penalty: 0.2 },
  server: { weight: 5, length: 1, penalty: 0 },
  title: { weight: 2, length: 3, penalty: 0.4 },
  summary: { weight: 1.5, length: 9, penalty: 0.5 },
  description: { weight: 0.8, length: 30, penalty: 0.7 },
  params: { weight: 0.4, length: 6, penalty: 0.6 },
} as const;

/** Names of arguments that are read. */
const MAX_PARAMS = 100;

const known = new WeakMap<Entry, Document>();

/** Made once for each entry, and kept for as long as the list that has it: whoever sees it, it is the same. */
export function getDocument(entry: Entry): Document {
  const document = known.get(entry) ?? createDocument(entry);
  known.set(entry, document);
  return document;
}

function createDocument({ server, ownName, item }: Entry): Document {
  const text = typeof item.description === 'string' ? item.description : '';
  const parts: Readonly<Record<keyof typeof FIELDS, readonly string[]>> = {
    name: listNameTerms(ownName),
    server: listTerms(server),
    title: typeof item.title === 'string' ? listTerms(item.title) : [],
    summary: listTerms(takeSummary(text)),
    description: listTerms(text),
    params: listParams(item.inputSchema).flatMap(listNameTerms),
  };
  const weights = new Map<number, number>();
  for (const [field, { weight, length, penalty }] of Object.entries(FIELDS)) {
    const terms = parts[field as keyof typeof FIELDS];
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
}

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
export function hashTerm(term: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < term.length; at += 1) {
    hash = Math.imul(hash ^ term.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}

/** How much the term says of the tool; 0 where it is not there. */
export function findWeight({ hashes, weights }: Document, hash: number): number {
  let low = 0;
  let high = hashes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((hashes[middle] ?? 0) < hash) low = middle + 1;
    else high = middle;
  }
  return hashes[low] === hash ? (weights[low] ?? 0) : 0;
}
