// Spec §4.6–§4.8: the OAuth proxy, put together.
import type { Clock } from '../../core/clock.ts';
import type { Fetch } from '../../core/fetch-limited.ts';
import type { Reply, RequestBody } from '../../core/message.ts';
import type { Store } from '../../core/store/store.ts';
import { type AuthorizeSettings, createAuthorize } from './authorize.ts';
import { createRegister } from './register.ts';
import { createRegisteredClients } from './registered-clients.ts';
import { createRevoke, type RevokeSettings } from './revoke.ts';
import { createToken, type TokenSettings } from './token.ts';
import { createUpstream } from './upstream.ts';

export interface OAuthProxySettings extends AuthorizeSettings, TokenSettings, RevokeSettings {
  readonly dcrClientTtlSeconds: number;
}

export interface OAuthProxy {
  authorize(query: string): Promise<Reply>;
  /** `authorization` is the caller's Authorization header. */
  token(body: RequestBody, authorization: string | undefined): Promise<Reply>;
  register(metadata: unknown): Promise<Reply>;
  revoke(body: RequestBody, authorization: string | undefined): Promise<Reply>;
}

export function createOAuthProxy(
  settings: OAuthProxySettings,
  { store, fetch, clock }: { store: Store; fetch: Fetch; clock: Clock },
): OAuthProxy {
  const clients = createRegisteredClients(store, settings.dcrClientTtlSeconds);
  const upstream = createUpstream(fetch);
  return {
    authorize: createAuthorize(settings, clients),
    token: createToken(settings, clients, upstream),
    register: createRegister(clients, clock),
    revoke: createRevoke(settings, clients, upstream),
  };
}
