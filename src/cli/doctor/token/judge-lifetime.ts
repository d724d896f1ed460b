// Some clients refresh at every look at a session once an access token has less than five minutes left.
import { type Finding, warning } from '../finding.ts';
import { readTokenParts } from './describe.ts';

/** Twice those five minutes: half of the token's life is then free of refreshes. */
const MIN_SECONDS = 600;

/** Nothing for a token that does not say when it was issued. */
export function judgeLifetime(token: string): readonly Finding[] {
  const { iat, exp } = readTokenParts(token)?.claims ?? {};
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat >= MIN_SECONDS) return [];
  return [
    warning('token.lifetime', `Access tokens live ${describeSpan(exp - iat)} only.`, {
      why: 'VS Code and others ask for a new one all the time once less than five minutes are left.',
      remedy:
        'have the provider issue access tokens that live 10 minutes or longer (in Keycloak: Realm settings, Tokens, Access Token Lifespan).',
    }),
  ];
}

const describeSpan = (seconds: number): string =>
  seconds % 60 === 0 && seconds >= 120 ? `${seconds / 60} minutes` : `${seconds} s`;
