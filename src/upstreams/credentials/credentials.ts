// §18.6: what a server learns of the caller: nothing, unless its `auth` says so.

import type { HttpUpstreamConfig } from '../../config/file/gateway-file.ts';
import type { ExchangeToken } from '../../oauth/provider/exchange-token.ts';
import { isSafeForTokens } from '../../platform/address.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { CredentialError } from '../upstream.ts';
import type { GetHeaders, GetToken } from './get-headers.ts';
import type { Identity } from './identity.ts';
import { createTokenExchange } from './token-exchange.ts';

export interface CredentialsDeps {
  /** Asked only for servers with `identity`. */
  readonly identity: Identity;
  /** Asked only for servers with `token-exchange`. */
  readonly exchangeToken: ExchangeToken;
  readonly clock: Clock;
  readonly log: Log;
}

export function createCredentials(
  { name, url, auth }: Pick<HttpUpstreamConfig, 'name' | 'url' | 'auth'>,
  deps: CredentialsDeps,
): GetHeaders {
  switch (auth.type) {
    case 'none':
      return () => NO_HEADERS;
    case 'identity':
      return addToken((caller) => deps.identity.issueToken(caller, url).catch(failIdentity));
    case 'token-exchange':
      return addToken(createTokenExchange({ server: name, ...auth }, deps));
    case 'forward':
      return addToken(createForward({ url, audience: auth.audience }));
  }
}

const NO_HEADERS = {};

const addToken = (getToken: GetToken): GetHeaders =>
  async function getHeaders(caller) {
    const token = await getToken(caller);
    return token === undefined ? {} : { authorization: `Bearer ${token}` };
  };

function failIdentity(cause: unknown): never {
  throw new CredentialError('this service cannot sign now who calls', { cause });
}

// §18.6: `forward`: the caller's own token, for a server that it was made for.

interface ForwardConfig {
  readonly url: string;
  readonly audience: string;
}

function createForward({ url, audience }: ForwardConfig): GetToken {
  const isSafe = isSafeForTokens(url);

  return function forwardToken({ user }) {
    if (user === undefined) return undefined;
    if (!isSafe) {
      throw new CredentialError(
        'tokens are forwarded by https only, and its address has none; only the operator of this service can change that',
      );
    }
    if (!namesAudience(user.claims.aud, audience)) {
      throw new CredentialError(
        'the token of this login was not made for it; only the operator of this service can change that',
      );
    }
    return user.token;
  };
}

const namesAudience = (aud: unknown, audience: string): boolean =>
  Array.isArray(aud) ? aud.includes(audience) : aud === audience;
