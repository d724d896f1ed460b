// §18.6: `forward`: the caller's own token, for a server that it was made for.
import { isSafeForTokens } from '../../../core/loopback.ts';
import { CredentialError } from '../upstream.ts';
import type { GetToken } from './get-headers.ts';

export interface ForwardConfig {
  readonly url: string;
  readonly audience: string;
}

export function createForward({ url, audience }: ForwardConfig): GetToken {
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
