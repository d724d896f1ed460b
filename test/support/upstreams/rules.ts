// Rules, and what they are asked about.

import { createRules } from '../../../src/control/rules/create-rules.ts';
import type { RuleConfig, RuleDecision, RuledItem } from '../../../src/control/rules/rules.ts';
import { readEmail, type UserContext } from '../../../src/http/endpoint/message.ts';
import type { PolicyCaller } from '../../../src/mcp/calls/policy.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import type { JsonObject } from '../../../src/platform/json.ts';

export const rule = (changes: Partial<RuleConfig>): RuleConfig => ({
  who: 'everyone',
  when: undefined,
  may: ['*'],
  place: 'rules[0]',
  ...changes,
});

const buildItem =
  (kind: RuledItem['kind']) =>
  (name: string, changes: Partial<RuledItem> = {}): RuledItem => ({
    kind,
    name,
    server: '',
    annotations: {},
    args: undefined,
    ...changes,
  });

export const tool = buildItem('tool');
export const prompt = buildItem('prompt');
export const resource = buildItem('resource');

/** A user as a verified token would tell of it. */
export function userWith(claims: object, token = 'token'): UserContext {
  const all: JsonObject = { sub: 'user-1', ...claims };
  const { name, groups } = all;
  return {
    sub: typeof all.sub === 'string' ? all.sub : 'user-1',
    ...readEmail(all),
    ...(typeof name === 'string' ? { name } : {}),
    ...(Array.isArray(groups) && groups.every((group) => typeof group === 'string')
      ? { groups }
      : {}),
    claims: Object.defineProperties({ sub: 'user-1' }, Object.getOwnPropertyDescriptors(claims)),
    token,
  };
}

export const decide = async (
  rules: readonly RuleConfig[],
  item: RuledItem,
  caller: PolicyCaller = { user: userWith({}), clientId: undefined },
): Promise<RuleDecision> => (await createRules({ clock: systemClock }, rules)).decide(item, caller);
