// What keeps connections, without a gateway around it: for what two of them do with one store, and what lies in it.

import { createConnections } from '../../../src/connections/feature.ts';
import type {
  ConnectionAuth,
  ConnectionOwner,
  ConnectionPorts,
  ConnectionServer,
} from '../../../src/mcp/upstream/connections.ts';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import type { Store } from '../../../src/store/store.ts';
import { openTestRuntime } from '../gateway/runtime.ts';
import { createBrowser } from './browser.ts';
import type { ProtectedServer } from './protected-server.ts';

export const KEEPER_URL = 'http://localhost:3000';
const SECRET = 'a secret of at least thirty-two characters';
export const PROVIDER = 'https://id.example';

export const ADA = { issuer: PROVIDER, sub: 'ada' };
export const BOB = { issuer: PROVIDER, sub: 'bob' };

export interface KeeperOptions {
  readonly servers: readonly ConnectionServer[];
  readonly clock?: Clock;
  readonly baseUrl?: string;
  /** The issuer at which users log in to the gateway. */
  readonly provider?: string;
}

export type Keeper = ConnectionPorts & {
  readonly servers: readonly ConnectionServer[];
  close(): void;
};

export function openKeeper(
  store: Store,
  { servers, clock = systemClock, baseUrl = KEEPER_URL, provider = PROVIDER }: KeeperOptions,
): Keeper {
  const env = {
    AUTH_REQUIRED: 'true',
    OAUTH_MODE: 'broker',
    BASE_URL: baseUrl,
    OIDC_ISSUER: provider,
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_STATE_SECRET: SECRET,
  };
  const parts = createConnections(
    openTestRuntime({
      env,
      store,
      clock,
      fetch: globalThis.fetch,
      loginSeal: createSeal([SECRET]),
    }),
    () => servers,
  );
  if (parts === undefined) throw new Error('It is for tokens of the gateway’s own.');
  return { ...parts, servers };
}

export const toConnectionServer = (
  { url }: Pick<ProtectedServer, 'url'>,
  name = 'wiki',
  auth: Partial<ConnectionAuth> = {},
): ConnectionServer => ({
  name,
  url,
  auth: { type: 'oauth', pkce: true, owner: 'user', allowPrivate: false, ...auth },
});

export interface LoginSteps {
  readonly owner: ConnectionOwner;
  readonly account?: string;
  readonly requestId?: string;
  readonly scopes?: readonly string[];
}

const BROWSER = {
  redirectUri: `${KEEPER_URL}/connections/callback/wiki`,
  isStillLoggedIn: async () => true,
  browserHash: 'a-browser',
  isOperator: false,
};

/** As far as the authorization server sends the browser back. */
export async function beginLogin(
  keeper: Keeper,
  server: ConnectionServer,
  { owner, account = 'ada@work', requestId, scopes }: LoginSteps,
): Promise<ReadonlyMap<string, string>> {
  const begun = await keeper.connecting.begin({ owner, server: server.name, scopes }, server, {
    hash: BROWSER.browserHash,
    requestId,
    shownHosts: undefined,
  });
  if (begun === undefined) throw new Error('Its hosts have to be shown first.');
  const back = await createBrowser({ person: account }).openAsFar(
    begun,
    `${KEEPER_URL}/connections/callback/${server.name}`,
  );
  return new Map(back.searchParams);
}

export const finishLogin = (
  keeper: Keeper,
  query: ReadonlyMap<string, string>,
  back: Partial<Parameters<Keeper['connecting']['finish']>[1]>,
) =>
  keeper.connecting.finish(query, { ...BROWSER, owner: undefined, ...back }, (name) =>
    keeper.servers.find((server) => server.name === name),
  );

export async function connectOwner(
  keeper: Keeper,
  server: ConnectionServer,
  steps: LoginSteps,
): Promise<void> {
  const { owner } = steps;
  const query = await beginLogin(keeper, server, steps);
  await finishLogin(keeper, query, {
    owner,
    isOperator: owner === 'shared',
    redirectUri: `${KEEPER_URL}/connections/callback/${server.name}`,
  });
}
