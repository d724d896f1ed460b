// RFC 7591 §2, RFC 7517: the keys of a client that a metadata document describes, fetched as the document is: anybody may have named
// their host.

import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Network } from '../../platform/outbound/public-network.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import type { VerificationKey } from '../auth/jwk.ts';
import { type KeyHint, selectCandidates } from '../auth/key-set.ts';
import { type DocumentKeySource, failDocument, parseDocumentKeys } from './client-document.ts';
import { fetchDocument } from './fetch-document.ts';

/** Those that may have signed what names the key so. @throws ClientDocumentRefused */
export type FindDocumentKeys = (
  source: DocumentKeySource,
  hint: KeyHint,
) => Promise<readonly VerificationKey[]>;

const MAX_KEPT = 1000;
const MAX_UNDER_WAY = 20;
/** A key that was taken back counts for so long. */
const FRESH_MS = 300_000;
/** However many unknown key ids come: at most one fetch in this time. */
const COOL_DOWN_MS = 10_000;

interface KeptKeys {
  /** Undefined where they could not be had. */
  readonly keys: readonly VerificationKey[] | undefined;
  readonly fetchedAt: number;
}

export function createFindDocumentKeys({
  network,
  clock,
}: {
  readonly network: Network;
  readonly clock: Clock;
}): FindDocumentKeys {
  const kept = createExpiringMap<KeptKeys>(MAX_KEPT, clock.monotonic);
  const loads = createSingleFlight<string, KeptKeys>();

  async function load(url: URL): Promise<KeptKeys> {
    const fetchedAt = clock.monotonic();
    try {
      const { body } = await fetchDocument(url, network, clock);
      const keys = parseDocumentKeys(body) ?? failDocument(`${url.href} has no usable key.`);
      return keep(url, { keys, fetchedAt });
    } catch (refusal) {
      keep(url, { keys: undefined, fetchedAt });
      throw refusal;
    }
  }

  function keep(url: URL, found: KeptKeys): KeptKeys {
    const ms = found.keys === undefined ? COOL_DOWN_MS : FRESH_MS;
    kept.set(url.href, found, clock.monotonic() + ms);
    return found;
  }

  function loadOnce(url: URL): Promise<KeptKeys> {
    const isNew = loads.find(url.href) === undefined;
    if (isNew && loads.count() >= MAX_UNDER_WAY)
      failDocument('Too many keys of clients are being fetched. Try again in a few seconds.');
    return loads.run(url.href, () => load(url));
  }

  return async function findDocumentKeys(source, hint) {
    if (source.kind === 'given') return selectCandidates(source.keys, hint);
    const known = kept.get(source.url.href) ?? (await loadOnce(source.url));
    const found = selectCandidates(known.keys, hint);
    const mayHaveChanged = clock.monotonic() - known.fetchedAt >= COOL_DOWN_MS;
    if (known.keys === undefined) return failDocument(`${source.url.href} could not be used.`);
    if (found.length > 0 || !mayHaveChanged) return found;
    return selectCandidates((await loadOnce(source.url)).keys, hint);
  };
}
