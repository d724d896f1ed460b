// For the composition root: what the gateway's own tokens stand on, where it issues them.

import { createExpiringMap } from '../../platform/bounded-map.ts';
import { isObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildEndedGrantsChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import { createGrants } from './grants.ts';
import { createTokenCodec } from './token-codec.ts';

export type OwnTokens = NonNullable<ReturnType<typeof openOwnTokens>>;

/** Undefined where clients get the provider's tokens. */
export function openOwnTokens(runtime: Runtime) {
  const { server, oauth, mcp } = runtime.config;
  const { loginSeal: seal, clock, log } = runtime;
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
  const recent = createExpiringMap<true>('endedGrants', clock.monotonic);
  replicas.listen(({ grantId }) => recent.set(grantId, true, clock.monotonic() + REMEMBERED_MS));
  const endedGrants = {
    /** Never rejects: what is open anywhere then lives as long as it would have. */
    announce: (grantId: string) =>
      replicas.send({ grantId }).catch((cause: unknown) =>
        log.warn('Streams and calls of a login that has ended may go on for some minutes.', {
          grant: grantId,
          cause,
        }),
      ),
    listen: (listener: (grantId: string) => void) =>
      replicas.listen(({ grantId }) => listener(grantId)),
    hasEnded: (grantId: string) => recent.get(grantId) === true,
  };
  return {
    codec: createTokenCodec(seal, server.baseUrl),
    grants: createGrants(runtime, seal, endedGrants, lifetime),
    endedGrants,
    close: replicas.close,
  };
}

// That a grant has ended is told to all replicas. Calls that begin later need none of this, since each asks the store.

type EndedGrantMessage = Readonly<Record<'grantId', string>>;

const isEndedGrantMessage = (value: unknown): value is EndedGrantMessage =>
  isObject(value) && typeof value.grantId === 'string';

/** Longer than it takes from the look at the store until a stream is open. */
const REMEMBERED_MS = 60_000;
