// For the composition root: what the gateway's own tokens stand on, where it issues them.
import type { Config } from '../config/config.ts';
import type { Clock } from '../platform/clock.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { KeyValue } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { createGrants, type Grants } from './grants.ts';
import { createTokenCodec, type TokenCodec } from './token-codec.ts';

export interface OwnTokens {
  readonly codec: TokenCodec;
  readonly grants: Grants;
}

export interface OwnTokensDeps {
  readonly store: KeyValue;
  /** Undefined where nothing is sealed. */
  readonly seal: Seal | undefined;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'recordGrant'>;
}

/** Undefined where clients get the provider's tokens. */
export function openOwnTokens(
  { server, oauth }: Pick<Config, 'server' | 'oauth'>,
  { store, seal, clock, metrics }: OwnTokensDeps,
): OwnTokens | undefined {
  if (oauth.mode !== 'broker' || oauth.tokens.kind !== 'gateway') return undefined;
  if (seal === undefined) throw new Error("The gateway's own tokens need a secret");
  const lifetime = {
    idleSeconds: oauth.refreshTtlSeconds,
    maxSeconds: oauth.tokens.grantMaxSeconds,
    unrenewedSeconds: oauth.tokens.grantUnrenewedSeconds,
  };
  return {
    codec: createTokenCodec(seal, server.baseUrl),
    grants: createGrants({ store, seal, clock, lifetime, metrics }),
  };
}
