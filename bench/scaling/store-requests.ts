// What calls ask of the store, as the service asks it (src/http/limits/limiter.ts).
import type { LimitWindow, Store } from '../../src/store/store.ts';
import type { LimitScope } from '../../src/telemetry/metrics/metrics.ts';
import type { BuildRequest } from './redis-cost.ts';

/** Of the measurements that are not about their number. */
const USERS = 1000;
/** Whose users they are: the default of the settings in redis-cost.ts. */
export const ISSUER = 'https://issuer.example';
const DAY_SECONDS = 86_400;
const WINDOW_MS = 60_000;
export const GLOBAL_KEY = 'ratelimit:mcp:global';

/** Out of the way. */
const NO_MAX = 1_000_000_000;

const buildWindow = (scope: LimitScope, counted: string, max = NO_MAX): LimitWindow => ({
  scope,
  key: `ratelimit:mcp:${counted}`,
  windowMs: WINDOW_MS,
  max,
});

const buildSessionId = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const buildAddressWindow = (n: number) =>
  buildWindow('ip', `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
const buildAccess = (n: number) => ({
  sessionId: buildSessionId(n),
  owner: { sub: `user-${n}`, issuer: ISSUER },
  slideSeconds: DAY_SECONDS,
});

/** Each of the users has an address and a session, and they call in turn. */
export const forUsers =
  (users: number, build: BuildRequest): BuildRequest =>
  (n) =>
    build(n % users);

/** Of the n-th user. */
export const buildCallOfUser: BuildRequest = (n) => ({
  windows: [buildAddressWindow(n), buildWindow('global', 'global')],
  access: buildAccess(n),
});

export const buildSessionCall = forUsers(USERS, buildCallOfUser);

export const buildStatelessCall = forUsers(USERS, (n) => ({
  windows: [buildAddressWindow(n), buildWindow('global', 'global')],
  access: undefined,
}));

/** The parts of a call, which are scripts of their own on a cluster. */
export const buildAddressPart = forUsers(USERS, (n) => ({
  windows: [buildAddressWindow(n)],
  access: undefined,
}));
export const buildSessionPart = forUsers(USERS, (n) => ({
  windows: [],
  access: buildAccess(n),
}));
export const buildGlobalPart =
  (max = NO_MAX): BuildRequest =>
  () => ({ windows: [buildWindow('global', 'global', max)], access: undefined });

export async function createSessions(store: Store, users = USERS): Promise<void> {
  const now = Date.now();
  for (let n = 0; n < users; n++) {
    const record = {
      sessionId: buildSessionId(n),
      createdAt: now,
      lastAccessedAt: now,
      userId: `user-${n}`,
      userIssuer: ISSUER,
      protocolVersion: '2025-11-25',
      clientInfo: '{"name":"bench","version":"1"}',
      clientCapabilities: '{}',
    };
    await store.createSession(record, DAY_SECONDS);
  }
}
