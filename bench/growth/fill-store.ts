// A store that has been in use for long, made by the service's own code before the service starts.

import { loadConfig } from '../../src/config/load.ts';
import { createRegisteredClients } from '../../src/logins/clients/clients.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';

const SESSIONS = 1_000_000;
const CLIENTS = 100_000;
const DAY_SECONDS = 86_400;
/** How many wait for the store at once. */
const BATCH = 200;

export async function fillStore(
  env: Readonly<Record<string, string>>,
  fill: (store: Store) => Promise<void>,
): Promise<void> {
  const store = await openStore(loadConfig(env), { clock: systemClock, log: createLog('warn') });
  try {
    await fill(store);
  } finally {
    await store.close();
  }
}

/** Ids that wrk can count up to, in the form of session ids. */
const buildSessionId = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** Each of the sessions in turn, as `fillSessions` named them; far apart, as calls of many users are. */
export const OWN_SESSIONS_HEADER = {
  name: 'mcp-session-id',
  count: SESSIONS,
  lua: `string.format("00000000-0000-4000-8000-%012d", (n * 7919) % ${SESSIONS})`,
};

export const fillSessions = (store: Store, getUser: (n: number) => string): Promise<void> =>
  repeat(SESSIONS, async (n) => {
    const now = Date.now();
    const record = {
      sessionId: buildSessionId(n),
      createdAt: now,
      lastAccessedAt: now,
      userId: getUser(n),
      protocolVersion: '2025-11-25',
      clientInfo: '{"name":"bench","version":"1"}',
      clientCapabilities: '{}',
    };
    await store.createSession(record, DAY_SECONDS);
  });

export function fillClients(store: Store): Promise<void> {
  const clients = createRegisteredClients(store, {
    ttlSeconds: 30 * DAY_SECONDS,
    unusedTtlSeconds: DAY_SECONDS,
  });
  return repeat(CLIENTS, (n) =>
    clients.add({
      client_id: `svc-${String(n).padStart(12, '0')}`,
      client_name: `Client ${n}`,
      redirect_uris: [`https://client-${n}.example/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      client_id_issued_at: Math.floor(Date.now() / 1000),
      client_secret_expires_at: 0,
    }),
  );
}

async function repeat(times: number, task: (n: number) => Promise<void>): Promise<void> {
  for (let first = 0; first < times; first += BATCH) {
    const size = Math.min(BATCH, times - first);
    await Promise.all(Array.from({ length: size }, (_, at) => task(first + at)));
  }
}
