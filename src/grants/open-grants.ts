// For the composition root: what the gateway's own tokens stand on, where it issues them.
import type { Config } from '../config/config.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { buildEndedGrantsChannelName } from '../store/keys.ts';
import { createReplicas } from '../store/replicas/replicas.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { Bus, KeyValue } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import {
  createEndedGrants,
  type EndedGrantMessage,
  type EndedGrants,
  isEndedGrantMessage,
} from './ended-grants.ts';
import { createGrants, type Grants } from './grants.ts';
import { createTokenCodec, type TokenCodec } from './token-codec.ts';

export interface OwnTokens {
  readonly codec: TokenCodec;
  readonly grants: Grants;
  readonly endedGrants: EndedGrants;
  close(): void;
}

export interface OwnTokensDeps {
  readonly store: KeyValue & Bus;
  /** Undefined where nothing is sealed. */
  readonly seal: Seal | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'recordGrant' | 'recordDroppedReplicaMessage'>;
}

/** Undefined where clients get the provider's tokens. */
export function openOwnTokens(
  { server, oauth, mcp }: Pick<Config, 'server' | 'oauth' | 'mcp'>,
  deps: OwnTokensDeps,
): OwnTokens | undefined {
  const { store, seal, clock } = deps;
  if (oauth.mode !== 'broker') return undefined;
  if (seal === undefined) throw new Error("The gateway's own tokens need a secret");
  const lifetime = {
    idleSeconds: oauth.refreshTtlSeconds,
    maxSeconds: oauth.tokens.grantMaxSeconds,
    unrenewedSeconds: oauth.tokens.grantUnrenewedSeconds,
  };
  const replicas = createReplicas<EndedGrantMessage>({
    ...deps,
    getSeal: async () => seal,
    channel: buildEndedGrantsChannelName(mcp.sessions.keyPrefix),
    isMessage: isEndedGrantMessage,
  });
  const endedGrants = createEndedGrants({ ...deps, replicas });
  return {
    codec: createTokenCodec(seal, server.baseUrl),
    grants: createGrants({ store, seal, endedGrants, clock, lifetime, metrics: deps.metrics }),
    endedGrants,
    close: replicas.close,
  };
}
