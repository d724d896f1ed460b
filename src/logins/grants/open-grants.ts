// For the composition root: what the gateway's own tokens stand on, where it issues them.
import type { Runtime } from '../../runtime/runtime.ts';
import { buildEndedGrantsChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
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

/** Undefined where clients get the provider's tokens. */
export function openOwnTokens(runtime: Runtime): OwnTokens | undefined {
  const { server, oauth, mcp } = runtime.config;
  const { loginSeal: seal } = runtime;
  if (oauth.mode !== 'broker') return undefined;
  if (seal === undefined) throw new Error("The gateway's own tokens need a secret");
  const lifetime = {
    idleSeconds: oauth.refreshTtlSeconds,
    maxSeconds: oauth.tokens.grantMaxSeconds,
    unrenewedSeconds: oauth.tokens.grantUnrenewedSeconds,
  };
  const replicas = createReplicas<EndedGrantMessage>(
    { ...runtime, getSeal: async () => seal },
    buildEndedGrantsChannelName(mcp.sessions.keyPrefix),
    isEndedGrantMessage,
  );
  const endedGrants = createEndedGrants(runtime, replicas);
  return {
    codec: createTokenCodec(seal, server.baseUrl),
    grants: createGrants(runtime, seal, endedGrants, lifetime),
    endedGrants,
    close: replicas.close,
  };
}
