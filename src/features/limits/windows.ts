// §8: in which windows a request is counted.
import { toAddressKey } from '../../core/address-key.ts';
import type { LimitRule } from '../../core/config/groups/limits.ts';
import type { KnownLogin } from '../../core/endpoint.ts';
import { hashSha256 } from '../../core/sha256.ts';
import { buildLimitKey } from '../../core/store/keys.ts';
import type { LimitScope, LimitWindow } from '../../core/store/store.ts';

/** Who turned out to send a request, once it was judged. */
export type Caller =
  /** Let in, by a valid token or because what was sent is valid. `sub` where users are counted. */
  | { readonly kind: 'admitted'; readonly sub: string | undefined }
  /** Without a valid token: counted apart, so that such callers lock nobody out. */
  | { readonly kind: 'unauthenticated' };

export const createAddressWindow = (rule: LimitRule, clientIp: string): LimitWindow =>
  createWindow(rule, 'ip', rule.max.ip, toAddressKey(clientIp));

/** In place of the address, where requests of the group are counted by login. */
export interface LoginWindows {
  readonly login: LimitWindow;
  /** Of all logins behind the address, apart from its callers of no known login; undefined where there is no need. */
  readonly address: LimitWindow | undefined;
}

/** An answer that is there already costs next to nothing. */
const ANSWERED_FACTOR = 100;

export function createLoginWindows(
  rule: LimitRule,
  clientIp: string,
  { id, isAnswered }: KnownLogin,
): LoginWindows | undefined {
  const { grant: max } = rule.max;
  if (max === undefined) return undefined;
  if (isAnswered) {
    const login = createWindow(rule, 'grant', max * ANSWERED_FACTOR, `answered:${id}`);
    return { login, address: undefined };
  }
  return {
    login: createWindow(rule, 'grant', max, `grant:${id}`),
    address: createWindow(rule, 'ip', rule.max.ip, `logins:${toAddressKey(clientIp)}`),
  };
}

/** In which of its windows a login may be refused, whatever it asks for. */
export const createLoginKeys = (rule: LimitRule, clientIp: string, id: string): readonly string[] =>
  [true, false].flatMap((isAnswered) => {
    const windows = createLoginWindows(rule, clientIp, { id, isAnswered });
    return windows === undefined ? [] : [windows.login.key];
  });

/** Undefined where users are not counted, and for callers that are none. */
export function createUserWindow(rule: LimitRule, caller: Caller): LimitWindow | undefined {
  const { user: max } = rule.max;
  const sub = getSub(caller);
  if (sub === undefined || max === undefined) return undefined;
  return createWindow(rule, 'user', max, `user:${hashSha256(sub)}`);
}

/** Those that count beside the address, in their order. */
export function createCallerWindows(rule: LimitRule, caller: Caller): readonly LimitWindow[] {
  const user = createUserWindow(rule, caller);
  const counted = caller.kind === 'unauthenticated' ? 'anonymous' : 'global';
  const all = createWindow(rule, 'global', rule.max.global, counted);
  return user === undefined ? [all] : [user, all];
}

/** Invalid requests of all callers. It refuses nobody: what it counts is refused already. */
export const createInvalidWindow = (rule: LimitRule): LimitWindow =>
  createWindow(rule, 'global', rule.max.global, 'refused');

export const getSub = (caller: Caller): string | undefined =>
  caller.kind === 'admitted' ? caller.sub : undefined;

const createWindow = (
  { group, windowMs }: LimitRule,
  scope: LimitScope,
  max: number,
  counted: string,
): LimitWindow => ({ scope, key: buildLimitKey(group, counted), windowMs, max });
