// /account, and other pages of the gateway's own, as a browser sees them: a login at the page, its forms and its cookies.
import { expect } from 'vitest';
import type { Claims, OpaqueProvider } from '../providers/opaque-provider.ts';
import type { OwnTokenLogins, OwnTokenSetup } from './own-tokens.ts';

type AccountGateway = Pick<OwnTokenSetup, 'steps' | 'provider' | 'clock'>;

export interface AccountVisit {
  /** Where the browser was sent to log in. */
  readonly asked: URL;
  readonly back: Awaited<ReturnType<OwnTokenLogins['steps']['callback']>>;
  /** All that the browser sends. */
  readonly cookie: string;
  /** The one of the page alone. */
  readonly session: string;
}

export async function openAccount(
  { steps, provider }: Pick<OwnTokenLogins, 'steps'> & { readonly provider: OpaqueProvider },
  claims?: Claims,
  path = '/account',
): Promise<AccountVisit> {
  const begun = await steps.get(path);
  const asked = new URL(begun.headers.location ?? '');
  const cookie = readCookie(begun.headers['set-cookie']);
  const back = await steps.callback(provider.logIn(asked, claims), cookie);
  const session = readCookie(back.headers['set-cookie']);
  return { asked, back, cookie: `${cookie}; ${session}`, session };
}

export const readCookie = (header: unknown): string => String(header).split(';')[0] ?? '';

export const readCsrf = (page: string): string =>
  /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';

export const readGrants = (page: string): readonly string[] =>
  [...page.matchAll(/name="grant" value="([^"]+)"/g)].map(([, id]) => id ?? '');

/** As a browser whose user the provider has just asked; resolves to its cookies afterwards. */
export async function logOutEverywhere(own: AccountGateway): Promise<string> {
  const { cookie } = await openAccount(own);
  const { text } = await own.steps.get('/account', cookie);
  const led = await own.steps.post('/account', { csrf: readCsrf(text), action: 'end_all' }, cookie);
  const auth_time = Math.floor(own.clock.now() / 1000);
  const asked = new URL(led.headers.location ?? '');
  const back = await own.steps.callback(own.provider.logIn(asked, { auth_time }), cookie);
  const fresh = `${cookie.split(';')[0]}; ${readCookie(back.headers['set-cookie'])}`;
  const page = (await own.steps.get('/account?all=1', fresh)).text;
  const csrf = readCsrf(page);
  const ended = await own.steps.post('/account', { csrf, action: 'end_all' }, fresh);
  expect([ended.status, ended.headers.location]).toEqual([303, 'https://gw.example/account']);
  return `${cookie.split(';')[0]}; ${readCookie(ended.headers['set-cookie'])}`;
}
