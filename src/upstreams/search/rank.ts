// §25.3: BM25: which tools a query is about. Only tools that the caller may see take part, so that the order tells nothing of
// others.

import type { Turns } from '../../platform/clock.ts';
import type { Entry } from '../catalog/prepare-list.ts';
import { type Document, findWeight, getDocument, hashTerm } from './document.ts';
import { listTerms } from './terms.ts';
import { listMeanings, spellOut } from './vocabulary.ts';

/** Characters of a query that are read. */
export const MAX_QUERY = 500;
/** What a tool is called with says little of the tool: addresses, and what stands in quotes. */
const VALUES = /\S{1,200}@\S{1,200}|https?:\/\/\S{1,400}|"[^"]{0,400}"|“[^”]{0,400}”/g;
/** Terms of a query that count, in its order. */
const MAX_TERMS = 32;
/** How soon more of the same term says nothing new (`k1` of BM25). */
const SATURATION = 1.65;
/** What another word of the same meaning counts. */
const OTHER_WORD = 0.8;

interface QueryTerm {
  readonly hash: number;
  readonly share: number;
}

/** Each is a term, and its meanings: of these, what says most of a tool counts. */
export type Query = readonly (readonly QueryTerm[])[];

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
