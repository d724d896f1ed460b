// §5.11, RFC 6749 §6, RFC 9700 §4.14.2: what becomes of a refresh token that a client brings.

import { parseScope } from '../../config/rules.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import type { Client } from '../clients/clients.ts';
import type { Grant, IssuedPair } from '../grants/grant.ts';
import type { RefreshToken } from '../grants/token-codec.ts';
import type { OwnResources } from '../request/authorization-request.ts';
import { coversResource, readAskedResources } from './resources.ts';
import type { BrokerRuntime } from './runtime.ts';

/** The client asks for it; undefined for all that was granted. */
export interface AskedPair {
  readonly scopes: readonly string[] | undefined;
  readonly resources: readonly string[] | undefined;
}

export function readAskedPair(
  parameters: RequestParameters,
  { id }: Client,
  own: OwnResources,
): AskedPair {
  const scopes = parseScope(parameters.get('scope'));
  return {
    scopes: scopes.length === 0 ? undefined : scopes,
    resources: readAskedResources(parameters, own, id),
  };
}

export type RefreshDecision =
  /** The tokens that were given last are given again. `isFirstUse`: its client has them, so the token before is worthless. */
  | { readonly kind: 'again'; readonly isFirstUse: boolean }
  /** There are new ones, and this is the grant then. */
  | { readonly kind: 'rotated'; readonly grant: Grant }
  /** It was replaced, and its successor is in use: one of the two is in wrong hands. */
  | { readonly kind: 'reused' }
  /** It was replaced, and is brought for something else than its successor was given for. */
  | { readonly kind: 'replaced' }
  /** It was not granted. */
  | { readonly kind: 'otherScope' | 'otherResource' };

/** For which a replaced token is answered, whatever became of its successor: a client's own requests cross. */
const REPLACED_MS = 60_000;

/** `now` in epoch milliseconds. */
export function decideRefresh(
  grant: Grant,
  { generation }: RefreshToken,
  asked: AskedPair,
  settings: Pick<BrokerRuntime, 'baseUrl' | 'oauth'>,
  now: number,
): RefreshDecision {
  const { issued, replaced } = grant;
  // A later one than the store knows of: it lost its last moments, and the client has what it gave in them.
  const isCurrent = generation >= issued.generation;
  // A client that lost the answer comes again, perhaps hours later: until somebody has used what it was.
  const isStillGood =
    replaced?.generation === generation &&
    (!issued.isUsed || now - replaced.replacedAt <= REPLACED_MS);
  if (!isCurrent && !isStillGood) return { kind: 'reused' };
  const scopes = asked.scopes ?? grant.scopes;
  const resources = asked.resources ?? grant.resources;
  if (!includesAll(grant.scopes, scopes)) return { kind: 'otherScope' };
  if (!resources.every((one) => coversResource(grant.resources, one, settings)))
    return { kind: 'otherResource' };
  const isSameAsked = isSame(issued.scopes, scopes) && isSame(issued.resources, resources);
  // The token before is good for the same answer, and for no other.
  if (!isCurrent && !isSameAsked) return { kind: 'replaced' };
  const isKnown = generation <= issued.generation;
  if (isKnown && isFresh(issued, now) && isSameAsked)
    return { kind: 'again', isFirstUse: isCurrent && replaced !== undefined && !issued.isUsed };
  return {
    kind: 'rotated',
    grant: {
      ...grant,
      issued: {
        // Numbers are given out once: a token of a pair that nobody got stays worthless.
        generation: Math.max(issued.generation, generation) + 1,
        issuedAt: now,
        expiresAt: now + settings.oauth.tokens.accessSeconds * 1000,
        scopes,
        resources,
        isUsed: false,
      },
      // Whoever has one that was replaced gains no time by using it.
      replaced: { generation, replacedAt: isCurrent ? now : (replaced?.replacedAt ?? now) },
    },
  };
}

/** Over half of its life is left. */
export const isFresh = ({ issuedAt, expiresAt }: IssuedPair, now: number): boolean =>
  expiresAt - now > (expiresAt - issuedAt) / 2;

const includesAll = (granted: readonly string[], asked: readonly string[]) =>
  asked.every((one) => granted.includes(one));

const isSame = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && includesAll(one, other);
