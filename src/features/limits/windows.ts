// Spec §8, decisions 10: in which windows a request is counted.
import type { LimitRule } from '../../core/config/groups/limits.ts';
import { hashSha256 } from '../../core/sha256.ts';
import { limitKey } from '../../core/store/keys.ts';
import type { LimitScope, LimitWindow } from '../../core/store/store.ts';
import { addressKey } from './address-key.ts';

/** Who turned out to send a request. */
export type Caller =
  /** Let in, by a valid token or because what was sent holds. `sub` where users are counted. */
  | { readonly kind: 'admitted'; readonly sub: string | undefined }
  /** Without a valid token: counted apart, so that strangers lock nobody out. */
  | { readonly kind: 'anonymous' };

export const addressWindow = (rule: LimitRule, clientIp: string): LimitWindow =>
  windowOf(rule, 'ip', rule.max.ip, addressKey(clientIp));

/** Undefined where users are not counted, and for callers that are none. */
export function userWindow(rule: LimitRule, caller: Caller): LimitWindow | undefined {
  const { user: max } = rule.max;
  const sub = subOf(caller);
  if (sub === undefined || max === undefined) return undefined;
  return windowOf(rule, 'user', max, `user:${hashSha256(sub)}`);
}

/** Those that count beside the address, in their order. */
export function callerWindows(rule: LimitRule, caller: Caller): readonly LimitWindow[] {
  const user = userWindow(rule, caller);
  const counted = caller.kind === 'anonymous' ? 'anonymous' : 'global';
  const all = windowOf(rule, 'global', rule.max.global, counted);
  return user === undefined ? [all] : [user, all];
}

/** Those that do not hold, of all callers. It refuses nobody: what it counts is refused already. */
export const refusedWindow = (rule: LimitRule): LimitWindow =>
  windowOf(rule, 'global', rule.max.global, 'refused');

export const subOf = (caller: Caller): string | undefined =>
  caller.kind === 'admitted' ? caller.sub : undefined;

const windowOf = (
  { group, windowMs }: LimitRule,
  scope: LimitScope,
  max: number,
  counted: string,
): LimitWindow => ({ scope, key: limitKey(group, counted), windowMs, max });
