// The gateway over a store that answers at once and keeps nothing but sessions: what is left of a
// call is the transport, the token and the protocol.
import { loadConfig } from '../src/core/config/load.ts';
import type { SessionRecord, Store, Verdict } from '../src/core/store/store.ts';
import { createGateway } from '../src/gateway.ts';

const sessions = new Map<string, SessionRecord>();

const verdict: Verdict = {
  isAdmitted: true,
  scope: 'ip',
  limit: 1e9,
  remaining: 1e9,
  resetAt: Date.now() + 60_000,
  resetInMs: 60_000,
};

const store: Store = {
  get: async () => undefined,
  set: async () => {},
  getOrSet: async (_key, value) => value,
  getAndDelete: async () => undefined,
  delete: async () => {},
  countRequestAndReadSession: async (_windows, sessionId) => ({
    verdict,
    entry: undefined,
    session: sessionId === undefined ? undefined : sessions.get(sessionId),
  }),
  uncountRequest: async () => {},
  readSession: async (sessionId) => sessions.get(sessionId),
  async createSession(session) {
    sessions.set(session.sessionId, session);
    return [];
  },
  touchSession: async () => true,
  endSession: async () => true,
  claimExpiredSession: async () => false,
  sweepSessions: async () => 0,
  countSessions: async () => sessions.size,
  publish: async () => {},
  subscribe: () => () => {},
  ping: async () => {},
  close: async () => {},
};

const gateway = await createGateway(loadConfig(process.env), { store });
await gateway.listen();
process.on('SIGTERM', () => void gateway.close().then(() => process.exit(0)));
