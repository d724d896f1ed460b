// Resources to which clients' sessions have subscribed at a server: kept in the store, so that any replica can subscribe
// to them again.

import { hashSha256 } from '../../platform/ids.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import type { Bus } from '../../store/store.ts';
import {
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../upstream.ts';
import type { ServerSessionRecords } from './session-records.ts';

/** Each method throws StoreUnavailable where the store does not answer: that nobody subscribed to anything is something else. */
export interface SubscriptionMemory {
  read(sessionId: string): Promise<readonly string[]>;
  /** @throws UpstreamError where the session has too many. */
  note(sessionId: string, uri: string, isWanted: boolean): Promise<void>;
  /** The same, and all replicas hear of it. */
  change(sessionId: string, uri: string, isWanted: boolean): Promise<void>;
  forget(sessionId: string): Promise<void>;
  close(): void;
}

const MAX_URIS = 200;
const INVALID_PARAMS = -32602;

export const hashSession = (sessionId: string): string => hashSha256(`subscriptions ${sessionId}`);

/** `onChange` is called on each replica, with a hash of the session's id. */
export function createSubscriptionMemory(
  store: Bus,
  records: ServerSessionRecords,
  channel: string,
  onChange: (sessionHash: string) => void,
): SubscriptionMemory {
  /** Changes of one session follow one another. */
  const changing = new Map<string, Promise<void>>();
  let unsubscribe: (() => void) | undefined;

  async function write(sessionId: string, uri: string, isWanted: boolean): Promise<void> {
    let isTooMany = false;
    await records.update(sessionId, (text) => {
      const others = parseUris(text).filter((other) => other !== uri);
      const uris = isWanted ? [...others, uri] : others;
      isTooMany = uris.length > MAX_URIS;
      return isTooMany ? undefined : JSON.stringify({ uris });
    });
    if (isTooMany) {
      throw new UpstreamError('error', 'too many subscriptions', {
        jsonRpcError: {
          code: INVALID_PARAMS,
          message: `A session can subscribe to at most ${MAX_URIS} resources.`,
        },
      });
    }
  }

  async function note(sessionId: string, uri: string, isWanted: boolean): Promise<void> {
    const before = changing.get(sessionId) ?? Promise.resolve();
    const change = before.catch(() => {}).then(() => write(sessionId, uri, isWanted));
    changing.set(sessionId, change);
    try {
      await change;
    } finally {
      if (changing.get(sessionId) === change) changing.delete(sessionId);
    }
  }

  return {
    async read(sessionId) {
      // From now on there is a stream that depends on it.
      unsubscribe ??= store.subscribe(channel, onChange);
      // The session goes on, and so must what it wants: its time begins anew.
      const kept = await records.update(sessionId, (text) =>
        parseUris(text).length > 0 ? text : undefined,
      );
      return parseUris(kept);
    },
    note,
    async change(sessionId, uri, isWanted) {
      await note(sessionId, uri, isWanted);
      await store.publish(channel, hashSession(sessionId));
    },
    forget: async (sessionId) => void (await records.take(sessionId)),
    close: () => unsubscribe?.(),
  };
}

function parseUris(text: string | undefined): readonly string[] {
  const { uris } = parseObject(text ?? '') ?? {};
  return isStringArray(uris) ? uris : [];
}

/** What a request of a client's session changes. */
export interface SubscriptionChange {
  readonly sessionId: string;
  readonly uri: string;
  readonly isWanted: boolean;
}

/** Undefined for what is no such request. */
export function readSubscriptionChange(
  caller: UpstreamCaller,
  { method, params: { uri } }: UpstreamRequest,
): SubscriptionChange | undefined {
  const sessionId = nameOwnSession(caller);
  const isWanted = SUBSCRIBING.get(method);
  return isWanted === undefined || sessionId === undefined || typeof uri !== 'string'
    ? undefined
    : { sessionId, uri, isWanted };
}

/** The requests that change subscriptions; true for those that begin one. */
export const SUBSCRIBING: ReadonlyMap<string, boolean> = new Map([
  ['resources/subscribe', true],
  ['resources/unsubscribe', false],
]);
