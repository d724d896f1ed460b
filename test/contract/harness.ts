// What the contract of each port is tried on. Time moves by `advance`, never by waiting.
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { PagePlace, PageRequest, StoredPage } from '../../src/store/page.ts';
import type { SessionRecord, Store } from '../../src/store/store.ts';

export interface Harness {
  readonly store: Store;
  /** A second process's view of the same store; the same object where there can be only one. */
  readonly other: Store;
  /** Part of a limit that the other process may have taken for itself and not used (leased counting). */
  readonly maxShare?: number;
  /** Lets everything in the store grow older by `ms`. */
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** Of what is stored, in seconds. */
export const TTL = 3600;

export const newSession = (members: Partial<SessionRecord> = {}): SessionRecord => ({
  sessionId: randomUUID(),
  createdAt: 1_700_000_000_000,
  lastAccessedAt: 1_700_000_000_000,
  userId: 'ada',
  protocolVersion: '2025-11-25',
  clientInfo: '{"name":"x","list":[],"empty":{}}',
  clientCapabilities: '{"roots":{},"elicitation":{"modes":[]}}',
  ...members,
});

/** The first page, of all that a test makes. */
export const ALL = { from: undefined, limit: 100 };

/** Page by page; more pages than anything here has fail the test. */
export async function readAll<Item>(
  readPage: (request: PageRequest) => Promise<StoredPage<Item>>,
  limit: number,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let from: PagePlace | undefined;
  for (let pages = 0; pages < 100; pages += 1) {
    const page = await readPage({ from, limit });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    items.push(...page.items);
    from = page.next;
    if (from === undefined) return items;
  }
  throw new Error('The pages have no end');
}
