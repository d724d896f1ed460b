// §8.2, `TRUST_PROXY`: the caller's address.
import { canonicalizeAddress } from '../core/address.ts';
import type { TrustProxy } from '../core/config/trust-proxy.ts';

/** Where the caller's address may be read: headers, which anybody can write, and the socket. */
export interface AddressSources {
  readonly forwardedFor: string | undefined;
  readonly realIp: string | undefined;
  /** Of the connection, in its one spelling; or `unknown`. */
  readonly socket: string;
}

export type FindClientIp = (sources: AddressSources) => string;

/** An address in its one spelling, or this; text of a header never becomes part of a key. */
export const UNKNOWN = 'unknown';

/** Chosen once by `TRUST_PROXY`. */
export function createFindClientIp(trust: TrustProxy): FindClientIp {
  switch (trust.kind) {
    case 'all':
      return ({ forwardedFor, realIp, socket }) =>
        toAddress(listEntries(forwardedFor)[0] ?? (realIp?.trim() || socket));
    case 'none':
      return ({ socket }) => socket;
    case 'hops':
      // With fewer entries than proxies somebody came past them: only the socket is certain.
      return ({ forwardedFor, socket }) =>
        toAddress(listEntries(forwardedFor).at(-trust.hops) ?? socket);
    case 'networks':
      return ({ forwardedFor, socket }) =>
        findFirstUntrusted([...listEntries(forwardedFor), socket], trust.trusts);
  }
}

/** Nobody has so many proxies, and anybody can write a long list. */
const MAX_HOPS = 32;

/** From the right, the first that is no trusted proxy; all trusted: the leftmost. */
function findFirstUntrusted(hops: readonly string[], trusts: (address: string) => boolean): string {
  let last = UNKNOWN;
  for (let at = hops.length - 1; at >= 0 && at >= hops.length - MAX_HOPS; at -= 1) {
    last = toAddress(hops[at]);
    if (!trusts(last)) break;
  }
  return last;
}

const listEntries = (forwardedFor: string | undefined): readonly string[] =>
  forwardedFor?.trim() ? forwardedFor.split(',').map((entry) => entry.trim()) : [];

/** An address that anybody may have written; or `unknown`. */
export function toAddress(text: string | undefined): string {
  if (text === undefined) return UNKNOWN;
  return canonicalizeAddress(text) ?? canonicalizeAddress(removePort(text)) ?? UNKNOWN;
}

/** `ip:port` and `[v6]:port` lose the port, `[v6]` its brackets. */
const removePort = (text: string): string => {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([^:]*):\d{1,5})$/.exec(text) ?? [];
  return bracketed ?? plain ?? '';
};
