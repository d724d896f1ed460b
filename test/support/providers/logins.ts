// What a provider remembers: who is logged in, and the codes and tokens that came of it.
import { randomUUID } from 'node:crypto';
import type { Habits, Login, Person, Refusal } from './habits.ts';

interface Code {
  readonly login: Login;
  readonly isFirst: boolean;
  readonly redirectUri: string;
  readonly challenge: string | null;
}

interface RefreshToken {
  readonly login: Login;
  /** Epoch seconds. */
  usedAt: number | undefined;
}

export interface RedeemedCode {
  readonly login: Login;
  /** Whether this person never logged in by the client before. */
  readonly isFirst: boolean;
}

export type Logins = ReturnType<typeof createLogins>;

/** RFC 6749 §5.2, where nothing more is to be said. */
export const INVALID_GRANT: Refusal = {
  error: 'invalid_grant',
  error_description: 'The grant is not valid, or has ended.',
};

/** `getNow` in epoch seconds. */
export function createLogins(habits: Habits, getNow: () => number) {
  const all = new Set<Login>();
  const known = new Set<string>();
  const disabled = new Set<string>();
  const codes = new Map<string, Code>();
  const refreshTokens = new Map<string, RefreshToken>();
  const accessTokens = new Map<string, { readonly login: Login; readonly expiresAt: number }>();

  const isGood = (login: Login): boolean =>
    !login.hasEnded && !disabled.has(String(login.person.sub));

  function endWhere(matches: (login: Login) => boolean): readonly Login[] {
    const ended = [...all].filter((login) => matches(login) && !login.hasEnded);
    for (const login of ended) {
      login.hasEnded = true;
      all.delete(login);
    }
    return ended;
  }

  return {
    endWhere,
    /** Nothing of this person is good any more, and they cannot log in. */
    disable: (sub: string) => void disabled.add(sub),
    isDisabled: (sub: string) => disabled.has(sub),
    list: (): readonly Login[] => [...all].filter(isGood),
    begin(person: Person, asked: URLSearchParams, challenge: string | null): string {
      const now = getNow();
      const login: Login = {
        person,
        asked,
        scopes: (asked.get('scope') ?? '').split(' ').filter((scope) => scope !== ''),
        sid: randomUUID(),
        authTime: now,
        usedAt: now,
        hasEnded: false,
      };
      all.add(login);
      const code = randomUUID();
      const redirectUri = asked.get('redirect_uri') ?? '';
      codes.set(code, { login, isFirst: !known.has(person.sub), redirectUri, challenge });
      known.add(person.sub);
      return code;
    },
    /** Undefined where it is not good, or not for this request. It is good once. */
    takeCode(
      code: string,
      { redirectUri, challenge }: { redirectUri: string; challenge: string },
    ): RedeemedCode | undefined {
      const found = codes.get(code);
      codes.delete(code);
      const isMeant =
        found !== undefined &&
        isGood(found.login) &&
        found.redirectUri === redirectUri &&
        (found.challenge === null || found.challenge === challenge);
      return isMeant ? found : undefined;
    },
    keepRefreshToken(token: string, login: Login): void {
      refreshTokens.set(token, { login, usedAt: undefined });
    },
    useRefreshToken(token: string): Login | Refusal {
      const found = refreshTokens.get(token);
      const { usedRefreshToken, reuseSeconds, spentRefusal } = habits;
      if (found === undefined || !isGood(found.login)) return spentRefusal;
      const { login, usedAt } = found;
      const isSpent = usedAt !== undefined && getNow() - usedAt >= reuseSeconds;
      const isGoodOnce = usedRefreshToken === 'is refused' || usedRefreshToken === 'ends the login';
      if (isSpent && isGoodOnce) {
        if (usedRefreshToken === 'ends the login') endWhere((other) => other === login);
        return spentRefusal;
      }
      found.usedAt ??= getNow();
      return login;
    },
    keepAccessToken(token: string, login: Login, expiresIn: number | undefined): void {
      accessTokens.set(token, { login, expiresAt: getNow() + (expiresIn ?? Infinity) });
    },
    /** Of an access token that is good. */
    findLogin(accessToken: string): Login | undefined {
      const { login, expiresAt } = accessTokens.get(accessToken) ?? {};
      return login && isGood(login) && getNow() < (expiresAt ?? 0) ? login : undefined;
    },
    /** RFC 7009. */
    revoke(token: string): void {
      const login = refreshTokens.get(token)?.login ?? accessTokens.get(token)?.login;
      if (login === undefined) return;
      const { revocationEnds } = habits;
      endWhere((other) =>
        revocationEnds === 'the login' ? other === login : other.person.sub === login.person.sub,
      );
    },
  };
}
