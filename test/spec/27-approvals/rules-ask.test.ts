// §27: which calls are asked about, and who is asked, by the rules.

import { expect, test } from 'vitest';
import { createRules } from '../../../src/control/rules/create-rules.ts';
import { checkRules } from '../../../src/control/rules/rule-config.ts';
import type { RuleConfig, RuledItem } from '../../../src/control/rules/rules.ts';
import type { PolicyCaller } from '../../../src/mcp/calls/policy.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { decide, rule, tool, userWith } from '../../support/upstreams/rules.ts';

const asked = async (
  rules: readonly RuleConfig[],
  item: RuledItem,
  caller?: PolicyCaller,
): Promise<string | undefined> => {
  const decision = await decide(rules, item, caller);
  return decision.kind === 'allowed' ? decision.ask : decision.kind;
};

const call = (name: string, args: Record<string, unknown> = {}): RuledItem =>
  tool(name, { server: 'files', args });

test('§27.1 a call is asked about if any rule that matches asks, wherever it stands', async () => {
  const open = rule({ may: ['files__*'], place: 'rules[0]' });
  const asks = rule({ may: ['files__write*'], ask: 'user', place: 'rules[1]' });
  for (const rules of [
    [open, asks],
    [asks, open],
  ]) {
    expect(await asked(rules, call('files__write_file'))).toBe('user');
    expect(await asked(rules, call('files__read_file'))).toBeUndefined();
    expect(await decide(rules, call('files__write_file'))).toMatchObject({ askRule: 'rules[1]' });
  }
  // It allows what it asks about, and nothing more.
  expect(await asked([asks], call('files__write_file'))).toBe('user');
  expect(await asked([asks], call('files__read_file'))).toBe('denied');
});

test.each([
  [['user', 'page'], 'page'],
  [['page', 'user'], 'page'],
  [['operator', 'page', 'user'], 'operator'],
  [['user', 'operator'], 'operator'],
] as const)('§27.1 of rules that ask %j, %s counts', async (asks, expected) => {
  const rules = asks.map((ask, index) => rule({ ask, place: `rules[${index}]` }));
  expect(await asked(rules, call('files__write_file'))).toBe(expected);
  const byArgs = asks.map((ask) => rule({ ask, when: 'has(args.path)' }));
  expect(await asked(byArgs, call('files__write_file', { path: 'a' }))).toBe(expected);
});

test('§27.1 arguments decide whether a call is asked about, and a condition that fails asks', async () => {
  const rules = [
    rule({ place: 'rules[0]' }),
    rule({ ask: 'page', when: 'args.path.startsWith("/etc")', place: 'rules[1]' }),
  ];
  expect(await asked(rules, call('files__write_file', { path: '/etc/passwd' }))).toBe('page');
  expect(await asked(rules, call('files__write_file', { path: '/tmp/a' }))).toBeUndefined();
  // Of another type, more than may be looked at, not there: nobody gets around the question by it.
  expect(await asked(rules, call('files__write_file', { path: ['/etc/passwd'] }))).toBe('page');
  expect(
    await asked(rules, call('files__write_file', { path: `/tmp/${'a'.repeat(20_000)}` })),
  ).toBe('page');
  expect(await asked(rules, call('files__write_file'))).toBe('page');
  // In a list the arguments are not known yet.
  expect(await decide(rules, tool('files__write_file'))).toMatchObject({
    ask: 'page',
    isAskedByArgs: true,
  });
  // What fails allows nothing by itself.
  expect(await asked(rules.slice(1), call('files__write_file'))).toBe('denied');
});

test('§27.1 a rule for others asks nobody; a client that is not known may be any', async () => {
  const rules = [
    rule({}),
    rule({ who: { groups: ['contractors'] }, ask: 'operator' }),
    rule({ who: { clients: ['https://new.example/*'] }, ask: 'user' }),
  ];
  const write = call('files__write_file');
  const of = (claims: object, clientId: string | undefined) =>
    asked(rules, write, { user: userWith(claims), clientId });
  expect(await of({ groups: ['contractors'] }, 'app')).toBe('operator');
  expect(await of({ groups: ['staff'] }, 'app')).toBeUndefined();
  expect(await of({}, 'https://new.example/app')).toBe('user');
  expect(await of({}, undefined)).toBe('user');
});

test('§27.1 who.views: a rule holds at the paths of these views alone, and what is remembered of one view says nothing of another', async () => {
  const rules = await createRules({ clock: systemClock }, [
    rule({ who: { views: ['research'] }, may: ['wiki__*'], place: 'rules[0]' }),
    rule({ who: { views: ['writing'] }, may: ['wiki__*'], ask: 'user', place: 'rules[1]' }),
  ]);
  const claims = { exp: Date.now() / 1000 + 600 };
  const shared = userWith(claims);
  const decideAt = (view: string | undefined, user = userWith(claims)) => {
    const caller: PolicyCaller = { user, clientId: 'app', view };
    const decision = rules.decide(tool('wiki__edit', { args: {} }), caller);
    return decision.kind === 'allowed' ? (decision.ask ?? 'nobody') : decision.kind;
  };
  for (const user of [undefined, shared]) {
    for (let time = 0; time < 2; time += 1) {
      expect(decideAt('research', user)).toBe('nobody');
      expect(decideAt('writing', user)).toBe('user');
      expect(decideAt(undefined, user)).toBe('denied');
      expect(decideAt('other', user)).toBe('denied');
    }
  }
  const nobody = { user: undefined, clientId: undefined };
  expect(rules.decide(tool('wiki__edit'), { ...nobody, view: 'research' }).kind).toBe('allowed');
  expect(rules.decide(tool('wiki__edit'), nobody).kind).toBe('denied');
});

test('§27.1 a rule that asks is about tools alone', async () => {
  const problems = await checkRules([
    rule({ may: ['files__*', 'prompt:*', 'resource:file:///*'], ask: 'user' }),
  ]);
  expect(problems.map(({ message }) => message)).toEqual([
    'may: "prompt:*" cannot have "ask", which is for tools. Write a separate rule for it, without "ask".',
    'may: "resource:file:///*" cannot have "ask", which is for tools. Write a separate rule for it, without "ask".',
  ]);
  expect(await checkRules([rule({ may: ['*'], ask: 'user' })])).toEqual([]);
});

test('§27.1 to connect a server is no call that anybody is asked about', async () => {
  const connect = tool('files__connect', { server: 'files', args: {}, namesBegin: 'files__' });
  expect(await asked([rule({ ask: 'operator' })], connect)).toBeUndefined();
});
