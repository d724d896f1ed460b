// MCP 2025-11-25 "URL mode elicitation": which questions a session got that lead to a page. Only those can be said to be done:
// any other id is a server's word that no guard saw, or is another session's.

import type { GatewayError } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import { isShortId } from '../../protocol/json-rpc.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildElicitationKey } from '../../store/keys.ts';
import type { Call } from '../calls/call.ts';
import { URL_REQUIRED } from '../control/ask-to-open.ts';

export interface Elicitations {
  /** Tells the client of a call that it is done; false where the call did not ask it, or it was told before. */
  completeElicitation(call: Call, sessionId: string, elicitationId: string): boolean;
  /** An error says that the user of the session has to open pages first. */
  noteRequired(sessionId: string, error: GatewayError): void;
  /** Whether the session got it, at any replica, and was not told yet that it is done: true once. */
  takeElicitation(sessionId: string, elicitationId: string): Promise<boolean>;
}

/** Of the user who opens the page. */
const TTL_SECONDS = 3600;
/** Of one call, and of one error; of more, those before are forgotten. */
const MAX_REMEMBERED = 100;
const MAX_OF_ERROR = 16;

export function createElicitations({ config, store }: Pick<Runtime, 'config' | 'store'>) {
  const { keyPrefix } = config.mcp.sessions;
  const ofCalls = new WeakMap<Call, Set<string>>();

  const buildKey = (sessionId: string, elicitationId: string): string =>
    buildElicitationKey(keyPrefix, sessionId, hashSha256(elicitationId));

  /** Not waited for, and not missed where the store does not answer: its client then goes on without being told. */
  function note(sessionId: string, elicitationId: string): void {
    store.set(buildKey(sessionId, elicitationId), 'asked', TTL_SECONDS).catch(() => {});
  }

  return {
    /** The client of the call has been sent this question. */
    noteAsked(call: Call, sessionId: string, params: object): void {
      const elicitationId = readId(params);
      if (elicitationId === undefined) return;
      const asked = ofCalls.get(call) ?? new Set();
      ofCalls.set(call, asked.add(elicitationId));
      const [first] = asked;
      if (asked.size > MAX_REMEMBERED && first !== undefined) asked.delete(first);
      note(sessionId, elicitationId);
    },
    completeElicitation(call: Call, sessionId: string, elicitationId: string): boolean {
      if (ofCalls.get(call)?.delete(elicitationId) !== true) return false;
      call.stream.send({ method: 'notifications/elicitation/complete', params: { elicitationId } });
      store.delete(buildKey(sessionId, elicitationId)).catch(() => {});
      return true;
    },
    noteRequired(sessionId: string, { failure: { jsonRpc } }: GatewayError): void {
      const { elicitations } = isObject(jsonRpc?.data) ? jsonRpc.data : NOTHING;
      if (jsonRpc?.code !== URL_REQUIRED || !Array.isArray(elicitations)) return;
      for (const params of elicitations.slice(0, MAX_OF_ERROR)) {
        const elicitationId = readId(params);
        if (elicitationId !== undefined) note(sessionId, elicitationId);
      }
    },
    takeElicitation: async (sessionId: string, elicitationId: string): Promise<boolean> =>
      isShortId(elicitationId) &&
      (await store.getAndDelete(buildKey(sessionId, elicitationId))) !== undefined,
  };
}

const NOTHING = { elicitations: undefined };

function readId(params: unknown): string | undefined {
  const { elicitationId } = isObject(params) ? params : NO_ID;
  return typeof elicitationId === 'string' && isShortId(elicitationId) ? elicitationId : undefined;
}

const NO_ID = { elicitationId: undefined };
