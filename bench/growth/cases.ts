// What may grow, and by how much: the same call against a small and a grown service, which differ in this
// alone.

import type { Store } from '../../src/store/store.ts';
import type { Call } from '../calls.ts';
import { fillClients, fillSessions, OWN_SESSIONS_HEADER } from './fill-store.ts';
import { openIdleConnections } from './idle-connections.ts';

export interface GrowthCase {
  /** As `--only` takes it. */
  readonly name: string;
  readonly label: string;
  readonly stores: readonly StoreKind[];
  /** Of both sides. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Seconds: what is new to the service must all have come once. */
  readonly warmUpSeconds?: number;
  readonly small: Side;
  readonly grown: Side;
}

export type StoreKind = 'redis' | 'embedded';

export interface Side {
  readonly args?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
  /** Before the service starts. */
  fill?(store: Store): Promise<void>;
  readonly variedHeader?: NonNullable<Call['variedHeader']>;
  /** Once the service is warm. What it returns throws when it did not last until then. */
  occupy?(origin: string): Promise<() => void>;
}

const BOTH = ['redis', 'embedded'] as const;
const CATALOG = ['--catalog', 'bench/growth/catalog.mjs'];

const createAddresses = (count: number) => ({
  name: 'x-forwarded-for',
  count,
  lua: 'string.format("10.%d.%d.%d", n / 65536, n / 256 % 256, n % 256)',
});

export const GROWTH_CASES: readonly GrowthCase[] = [
  {
    name: 'tools',
    label: '1,000 tools instead of 1',
    stores: ['embedded'],
    small: { args: CATALOG, settings: { TOOLS: '1' } },
    grown: { args: CATALOG, settings: { TOOLS: '1000' } },
  },
  {
    name: 'sessions',
    label: '1,000,000 sessions in the store instead of 1',
    stores: BOTH,
    small: {},
    grown: { fill: (store) => fillSessions(store, (n) => `user-of-${n}`) },
  },
  {
    name: 'active-sessions',
    label: '1,000,000 sessions, and calls in all of them',
    stores: BOTH,
    settings: { MCP_USER_SESSIONS_MAX: '0' },
    warmUpSeconds: 10,
    small: {},
    grown: {
      fill: (store) => fillSessions(store, () => 'user-1'),
      variedHeader: OWN_SESSIONS_HEADER,
    },
  },
  {
    name: 'connections',
    label: '10,000 idle connections instead of none',
    stores: BOTH,
    settings: { MAX_CONNECTIONS: '20000' },
    small: {},
    grown: { occupy: (origin) => openIdleConnections(origin, 10_000) },
  },
  {
    name: 'clients',
    label: '100,000 registered clients instead of none',
    stores: BOTH,
    small: {},
    grown: { fill: fillClients },
  },
  {
    name: 'addresses',
    label: '100,000 addresses of callers instead of 1',
    stores: BOTH,
    settings: { TRUST_PROXY: '1' },
    warmUpSeconds: 20,
    small: { variedHeader: createAddresses(1) },
    grown: { variedHeader: createAddresses(100_000) },
  },
];
