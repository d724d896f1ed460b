// What the authorization server of a protected server remembers: clients, codes, tokens, and whose they are.
import { createHash, randomUUID } from 'node:crypto';
import type { ServerHabits } from './habits.ts';

export interface RegisteredClient {
  readonly id: string;
  readonly secret: string | undefined;
  /** Undefined: any. */
  readonly redirectUris: readonly string[] | undefined;
  /** Where its keys are (`private_key_jwt`). */
  readonly jwksUri?: string | undefined;
}

/** One person's login by a client; all tokens that come of it belong to it. */
export interface ServerLogin {
  readonly account: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
  hasEnded: boolean;
  isRefreshing: boolean;
}

export interface IssuedTokens {
  readonly access: string;
  readonly refresh: string | undefined;
}

interface Code {
  readonly login: ServerLogin;
  readonly redirectUri: string;
  readonly challenge: string | undefined;
}

export type ServerLogins = ReturnType<typeof createServerLogins>;

/** `getNow` in epoch milliseconds. */
export function createServerLogins(habits: ServerHabits, getNow: () => number) {
  const clients = new Map<string, RegisteredClient>();
  const codes = new Map<string, Code>();
  const refreshTokens = new Map<string, { readonly login: ServerLogin; isUsed: boolean }>();
  const accessTokens = new Map<
    string,
    { readonly login: ServerLogin; readonly expiresAt: number }
  >();
  const logins = new Set<ServerLogin>();
  const refusedAccounts = new Set<string>();
  /** Codes, tokens and secrets that were ever given out. */
  const issued: string[] = [];
  const isGood = (login: ServerLogin) => !login.hasEnded;

  function create(kind: string): string {
    const value = `${kind}-${randomUUID()}`;
    issued.push(value);
    return value;
  }

  return {
    clients,
    issued,
    addClient(client: RegisteredClient): void {
      clients.set(client.id, client);
      if (client.secret !== undefined) issued.push(client.secret);
    },
    register(
      redirectUris: readonly string[],
      {
        hasSecret,
        jwksUri,
      }: { readonly hasSecret: boolean; readonly jwksUri?: string | undefined },
    ): RegisteredClient {
      const client = {
        id: `registered-${randomUUID()}`,
        secret: hasSecret ? create('client-secret') : undefined,
        redirectUris,
        jwksUri,
      };
      clients.set(client.id, client);
      return client;
    },
    begin(account: string, asked: URLSearchParams): string {
      const scopes = (asked.get('scope') ?? '').split(' ').filter((scope) => scope !== '');
      const login: ServerLogin = {
        account,
        clientId: asked.get('client_id') ?? '',
        scopes: scopes.filter((scope) => habits.grantsOnly?.includes(scope) ?? true),
        hasEnded: false,
        isRefreshing: false,
      };
      logins.add(login);
      const code = create('code');
      codes.set(code, {
        login,
        redirectUri: asked.get('redirect_uri') ?? '',
        challenge: asked.get('code_challenge') ?? undefined,
      });
      return code;
    },
    /** A code is good once. */
    takeCode(form: URLSearchParams): ServerLogin | undefined {
      const found = codes.get(form.get('code') ?? '');
      codes.delete(form.get('code') ?? '');
      const challenge = createHash('sha256').update(form.get('code_verifier') ?? '');
      const isMeant =
        found !== undefined &&
        found.login.clientId === form.get('client_id') &&
        found.redirectUri === form.get('redirect_uri') &&
        (found.challenge === undefined || found.challenge === challenge.digest('base64url'));
      return isMeant ? found.login : undefined;
    },
    issue(login: ServerLogin): IssuedTokens {
      const access = create('access');
      const expiresAt = getNow() + (habits.expiresIn ?? Infinity) * 1000;
      accessTokens.set(access, { login, expiresAt });
      return { access, refresh: undefined };
    },
    issueRefreshToken(login: ServerLogin): string {
      const refresh = create('refresh');
      refreshTokens.set(refresh, { login, isUsed: false });
      return refresh;
    },
    useRefreshToken(token: string): ServerLogin | undefined {
      const found = refreshTokens.get(token);
      if (found === undefined || !isGood(found.login)) return undefined;
      const isSpent = found.isUsed;
      found.isUsed = true;
      if (!isSpent || habits.usedRefreshToken === 'is kept') return found.login;
      if (habits.usedRefreshToken === 'stays good') return found.login;
      if (habits.usedRefreshToken === 'ends the login') found.login.hasEnded = true;
      return undefined;
    },
    /** Of an access token that is good. */
    find(access: string): ServerLogin | undefined {
      const { login, expiresAt = 0 } = accessTokens.get(access) ?? {};
      if (login === undefined || refusedAccounts.has(login.account)) return undefined;
      return isGood(login) && getNow() < expiresAt ? login : undefined;
    },
    /** RFC 7009: whichever token ends the login. */
    revoke(token: string): void {
      const login = refreshTokens.get(token)?.login ?? accessTokens.get(token)?.login;
      if (login !== undefined) login.hasEnded = true;
    },
    /** At the server, as where its site says "Connected apps". */
    endOf(account: string): void {
      for (const login of logins) if (login.account === account) login.hasEnded = true;
    },
    refuseAccount: (account: string) => void refusedAccounts.add(account),
    /** Access tokens are not good any more; refresh tokens stay. */
    spoilAccessTokens(): void {
      accessTokens.clear();
    },
    countActive: (): number => [...logins].filter(isGood).length,
  };
}
