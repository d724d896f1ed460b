// Spec §8.2, decisions 1 (`TRUST_PROXY`) and 7: the caller's address.
import { canonicalizeAddress } from '../core/address.ts';
import type { TrustProxy } from '../core/config/trust-proxy.ts';

/** What is said of the caller: by headers (anybody's word) and by the socket. */
export interface CallerClues {
  readonly forwardedFor: string | undefined;
  readonly realIp: string | undefined;
  readonly socket: string | undefined;
}

/** An address in its one spelling, or this; text of a header never becomes part of a key. */
export const UNKNOWN = 'unknown';

/** Chosen once by `TRUST_PROXY`. */
export function createClientIp(trust: TrustProxy): (clues: CallerClues) => string {
  switch (trust.kind) {
    case 'all':
      return ({ forwardedFor, realIp, socket }) =>
        addressOf(entries(forwardedFor)[0] ?? (realIp?.trim() || socket));
    case 'none':
      return ({ socket }) => addressOf(socket);
    case 'hops':
      // With fewer entries than proxies somebody came past them: only the socket is certain.
      return ({ forwardedFor, socket }) =>
        addressOf(entries(forwardedFor).at(-trust.hops) ?? socket);
    case 'networks':
      return ({ forwardedFor, socket }) =>
        firstUntrusted([...entries(forwardedFor), socket ?? UNKNOWN], trust.trusts);
  }
}

/** Nobody has so many proxies, and anybody can write a long list. */
const MAX_HOPS = 32;

/** From the right, the first that is no trusted proxy; all trusted: the leftmost. */
function firstUntrusted(hops: readonly string[], trusts: (address: string) => boolean): string {
  let last = UNKNOWN;
  for (let at = hops.length - 1; at >= 0 && at >= hops.length - MAX_HOPS; at -= 1) {
    last = addressOf(hops[at]);
    if (!trusts(last)) break;
  }
  return last;
}

const entries = (forwardedFor: string | undefined): readonly string[] =>
  forwardedFor?.trim() ? forwardedFor.split(',').map((entry) => entry.trim()) : [];

function addressOf(text: string | undefined): string {
  if (text === undefined) return UNKNOWN;
  return canonicalizeAddress(text) ?? canonicalizeAddress(withoutPort(text)) ?? UNKNOWN;
}

/** `ip:port` and `[v6]:port` lose the port, `[v6]` its brackets. */
const withoutPort = (text: string): string => {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([^:]*):\d{1,5})$/.exec(text) ?? [];
  return bracketed ?? plain ?? '';
};
