// MCP up to 2025-11-25, resources/subscribe: which resources a session watches, in the store.

import { fail } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildSubscriptionKey } from '../../store/keys.ts';
import type { IdentifiedCaller, ServedCatalog } from '../catalog/served-catalog.ts';

export interface SessionSubscriptions {
  /** @throws GatewayError `invalid_params` for a resource that does not tell when it changes. */
  subscribe(owner: StreamOwner, uri: string): Promise<void>;
  unsubscribe(owner: StreamOwner, uri: string): Promise<void>;
  /** When the subscription was last saved, in epoch milliseconds; undefined when there is none. */
  findSavedAt(sessionId: string, uri: string): Promise<number | undefined>;
  /** Saves it again when that was long ago. */
  renew(sessionId: string, uri: string, savedAt: number): Promise<void>;
}

/** Whose stream, or subscription, it is. */
export interface StreamOwner {
  readonly sessionId: string;
  readonly caller: IdentifiedCaller;
  /** What the session's path serves. */
  readonly catalog: ServedCatalog;
}

/** From the subscription, or the last update that was sent a day or more after it. */
const TTL_SECONDS = 604_800;
const RENEW_AFTER_MS = 86_400_000;

export function createSessionSubscriptions({
  config,
  store,
  clock,
}: Runtime): SessionSubscriptions {
  const { keyPrefix } = config.mcp.sessions;
  const buildKey = (sessionId: string, uri: string) =>
    buildSubscriptionKey(keyPrefix, sessionId, hashSha256(uri));

  const save = (sessionId: string, uri: string) =>
    store.set(buildKey(sessionId, uri), String(clock.now()), TTL_SECONDS);

  return {
    async subscribe({ catalog, caller, sessionId }, uri) {
      if (!(await catalog.canWatch(uri, caller))) {
        fail('invalid_params', {
          details: 'params.uri is not a resource that clients can subscribe to',
          data: { uri },
        });
      }
      await save(sessionId, uri);
      await catalog.setWatched(uri, true, caller);
    },

    async unsubscribe({ catalog, caller, sessionId }, uri) {
      await store.delete(buildKey(sessionId, uri));
      await catalog.setWatched(uri, false, caller);
    },

    async findSavedAt(sessionId, uri) {
      const savedAt = await store.get(buildKey(sessionId, uri));
      return savedAt === undefined ? undefined : Number(savedAt);
    },

    async renew(sessionId, uri, savedAt) {
      const now = clock.now();
      if (now - savedAt <= RENEW_AFTER_MS) return;
      // Another replica may have ended it meanwhile.
      const key = buildKey(sessionId, uri);
      await store.compareAndSet(key, String(savedAt), String(now), TTL_SECONDS);
    },
  };
}
