// §18.5: conditions, `when`.

import { describe, expect, test } from 'vitest';
import { createRuleMemory, createRules } from '../../../src/control/rules/create-rules.ts';
import { checkRules } from '../../../src/control/rules/rule-config.ts';
import type { RuledItem } from '../../../src/control/rules/rules.ts';
import type { PolicyCaller } from '../../../src/mcp/calls/policy.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { decide, prompt, resource, rule, tool, userWith } from '../../support/upstreams/rules.ts';

const NOW = 1_800_000_000_000;
const ANN = {
  sub: 'ann',
  email: 'ann@example.com',
  name: 'Ann',
  groups: ['engineering', 'staff'],
  scope: 'openid files',
  realm_access: { roles: ['admin'] },
  'https://example.com/level': 3,
};
const caller: PolicyCaller = { user: userWith(ANN), clientId: 'cursor' };

const problemsOf = async (when: string): Promise<readonly string[]> =>
  (await checkRules([rule({ when })])).map(({ message }) => message);

async function holds(when: string, item: RuledItem = tool('x'), who = caller): Promise<boolean> {
  const rules = [rule({ when, may: ['*', 'prompt:*', 'resource:*'] })];
  expect(await problemsOf(when)).toEqual([]);
  return (await decide(rules, item, who)).kind === 'allowed';
}

describe('e-mail addresses', () => {
  const OWN = "user.email == 'ann@example.com'";
  const VERIFIED = `user.email_verified && ${OWN}`;
  test.each([
    // Where the token does not say, it is the provider's word that is taken, unless the rule asks for more.
    ['nothing', {}, true, false],
    ['email_verified true', { email_verified: true }, true, true],
    ['email_verified "true"', { email_verified: 'true' }, true, true],
    ['email_verified false', { email_verified: false }, false, false],
    ['email_verified "false"', { email_verified: 'false' }, false, false],
    ['email_verified null', { email_verified: null }, false, false],
    ['email_verified 0', { email_verified: 0 }, false, false],
    ['email_verified ["true"]', { email_verified: ['true'] }, false, false],
    ['xms_edov true', { xms_edov: true }, true, true],
    ['xms_edov "1"', { xms_edov: '1' }, true, true],
    ['xms_edov false', { xms_edov: false }, false, false],
    ['both', { email_verified: false, xms_edov: true }, false, false],
  ])('§18.5 e-mail: with %s in the token', async (_what, claims, isTaken, isVerified) => {
    const user = userWith({ email: 'ann@example.com', ...claims });
    const who = { user, clientId: undefined };
    expect([await holds(OWN, tool('x'), who), await holds(VERIFIED, tool('x'), who)]).toEqual([
      isTaken,
      isVerified,
    ]);
    // What the token says itself is there to be looked at, as it is.
    expect(await holds("user.claims.email == 'ann@example.com'", tool('x'), who)).toBe(true);
    const rules = [rule({ who: { claims: { email: 'ann@example.com' } } })];
    expect((await decide(rules, tool('x'), who)).kind).toBe(isTaken ? 'allowed' : 'denied');
  });

  test('§18.5 e-mail: what an address must not be does not let in who has none of their own', async () => {
    const user = userWith({ email: 'ann@example.com', email_verified: false });
    const who = { user, clientId: undefined };
    expect(await holds("!user.email.endsWith('@evil.example')", tool('x'), who)).toBe(false);
    expect(await holds("user.email != 'eve@evil.example'", tool('x'), who)).toBe(false);
  });
});

const call = (args: JsonObject): RuledItem => tool('x', { args });
const parse = (text: string): JsonObject => JSON.parse(text);

describe('what conditions look at', () => {
  test.each([
    ["user.email.endsWith('@example.com')", true],
    ["user.email.endsWith('@Example.com')", false],
    ["user.sub == 'ann' && user.name == 'Ann'", true],
    ["'engineering' in user.groups", true],
    ["'eng' in user.groups", false],
    ["'files' in user.scopes", true],
    ["'file' in user.scopes", false],
    ["'admin' in user.claims.realm_access.roles", true],
    ["user.claims.realm_access.roles.exists(r, r == 'admin')", true],
    ["user.claims['https://example.com/level'] >= 3", true],
    ["user.claims['https://example.com/level'] > 3", false],
    ['has(user.claims.department)', false],
    ["!has(user.claims.department) || user.claims.department == 'x'", true],
    ["client.id == 'cursor'", true],
    ["client.id.matches('^cur[a-z]+$')", true],
    ["tool.name == 'x' && tool.server == ''", true],
    ['size(user.groups) == 2', true],
    ["user.groups.all(g, g.size() > 4) && user.groups.exists_one(g, g == 'staff')", true],
    ['true', true],
    ['false', false],
    ['user.claims.department', false],
    ["user.claims.department == 'x'", false],
    ['user.email', false],
    ['1', false],
    ['user.groups', false],
    ["user.email + 1 == 'x'", false],
    ['1 / 0 == 1', false],
    ["int('x') == 1", false],
    ["user.claims.department == 'x' || true", true],
  ])('§18.5 %s: %s', async (when, expected) => {
    expect(await holds(when)).toBe(expected);
  });

  test('§18.5 annotations are those of the tool; prompts and resources are no tools', async () => {
    const when = 'tool.annotations.readOnlyHint';
    expect(await holds(when, tool('x', { annotations: { readOnlyHint: true } }))).toBe(true);
    expect(await holds(when, tool('x', { annotations: { readOnlyHint: 'true' } }))).toBe(false);
    expect(await holds(when)).toBe(false);
    expect(await holds("tool.name == 'x'", prompt('x'))).toBe(false);
    expect(await holds("tool.name == 'x'", resource('x'))).toBe(false);
  });

  test('§18.5 without a user, or a known client, what looks at them is false', async () => {
    const nobody: PolicyCaller = { user: undefined, clientId: undefined };
    expect(await holds("user.sub != 'x'", tool('x'), nobody)).toBe(false);
    expect(await holds("client.id != 'x'", tool('x'), nobody)).toBe(false);
    expect(await holds('true', tool('x'), nobody)).toBe(true);
  });

  test('§18.5 a rule with who and when needs both', async () => {
    const rules = [rule({ who: { groups: ['staff'] }, when: "user.sub == 'ann'" })];
    const judge = async (claims: object) =>
      (await decide(rules, tool('x'), { user: userWith(claims), clientId: undefined })).kind;
    expect(await judge(ANN)).toBe('allowed');
    expect(await judge({ sub: 'ann' })).toBe('denied');
    expect(await judge({ sub: 'bob', groups: ['staff'] })).toBe('denied');
  });
});

describe('arguments', () => {
  test.each([
    ["args.path.startsWith('/docs/')", { path: '/docs/a' }, true],
    ["args.path.startsWith('/docs/')", { path: '/etc' }, false],
    ["args.path.startsWith('/docs/')", {}, false],
    ["args.path.startsWith('/docs/')", { path: 5 }, false],
    ["args.path.startsWith('/docs/')", { path: ['/docs/'] }, false],
    ["args.path.startsWith('/docs/')", { path: { startsWith: '/docs/' } }, false],
    ["args['path'] == '/docs'", { path: '/docs' }, true],
    ["args.paths.all(p, p.startsWith('/docs/'))", { paths: ['/docs/a', '/docs/b'] }, true],
    ["args.paths.all(p, p.startsWith('/docs/'))", { paths: ['/docs/a', '/etc'] }, false],
    ["args.paths.all(p, p.startsWith('/docs/'))", { paths: ['/docs/a', 5] }, false],
    ['args.owners.all(o, o in user.groups)', { owners: ['staff'] }, true],
    ['args.n <= 5 && args.n > 1.5', { n: 2 }, true],
    ['args.deep.list[0].name == "a"', { deep: { list: [{ name: 'a' }] } }, true],
    ['has(args.force) && args.force', { force: false }, false],
    ["size(args) == 1 && 'path' in args", { path: 'x' }, true],
    ['args == {}.x', {}, undefined],
    ["'/etc' in [args.a, args.b]", { a: 1, b: '/etc' }, true],
    ["[args].exists(a, a.path == '/docs')", { path: '/docs' }, true],
    ["[args].exists(a, a.path == '/docs')", { path: '/etc' }, false],
    ["args.query.matches('^SELECT [a-z, ]+$')", { query: 'SELECT a, b' }, true],
    ["args.query.matches('^SELECT [a-z, ]+$')", { query: 'SELECT a; DROP' }, false],
  ])('§18.5 %s with %j: %s', async (when, args, expected) => {
    if (expected === undefined) expect(await problemsOf(when)).not.toEqual([]);
    else expect(await holds(when, call(args))).toBe(expected);
  });

  test.each([
    "args.path == '/docs'",
    "user.sub == 'nobody' && args.path == '/docs'",
    "args['path'] == '/docs'",
    "[args].exists(a, a.path == '/docs')",
    '[[args]][0][0].path == "/docs"',
    "(true ? args : args).path == '/docs'",
    "args.path == '/docs' || false",
    'false && has(args.path)',
  ])(
    '§18.5 in lists a condition that looks at arguments holds, also by another name: %s',
    async (when) => {
      const rules = await createRules(
        {
          clock: manualClock(NOW),
        },
        [rule({ when, may: ['*', 'prompt:*', 'resource:*'] })],
      );
      const judge = (item: RuledItem) => rules.decide(item, caller);
      expect(judge(tool('x'))).toEqual({ kind: 'allowed', rule: 'rules[0]', isByArgs: true });
      expect(judge(prompt('x')).kind).toBe('allowed');
      expect(judge(call({ path: '/etc' })).kind).toBe('denied');
      expect(judge(call({})).kind).toBe('denied');
      // There is nothing to look at when a resource is read.
      expect(judge(resource('x')).kind).toBe('denied');
      expect(judge(resource('x', { args: { path: '/docs' } })).kind).toBe('denied');
    },
  );

  test('§18.5 a call is decided by its arguments each time', async () => {
    const rules = await createRules({ clock: manualClock(NOW) }, [
      rule({ when: "args.path == 'a'", who: { groups: ['staff'] } }),
      rule({ when: "args.path == 'b'", who: { scopes: ['admin'] }, place: 'rules[1]' }),
      rule({ may: ['free'], place: 'rules[2]' }),
    ]);
    const judge = (path: string) => rules.decide(call({ path }), caller).kind;
    expect(['a', 'b', 'c', 'a', 'b'].map(judge)).toEqual([
      'allowed',
      'scopes_missing',
      'denied',
      'allowed',
      'scopes_missing',
    ]);
    expect(rules.decide(tool('free', { args: {} }), caller)).toEqual({
      kind: 'allowed',
      rule: 'rules[2]',
    });
  });
});

describe('attacks: values', () => {
  test.each([
    ["args.__proto__ != 'x'", '{}'],
    ["args['__proto__'] != 'x'", '{}'],
    ["args.constructor != 'x'", '{}'],
    ["args.toString != 'x'", '{}'],
    ["'toString' in args", '{}'],
    ['has(args.toString)', '{}'],
    ['has(args.__proto__)', '{}'],
    ['args.admin', '{"__proto__": {"admin": true}}'],
    ['args.path.length == 4', '{"path": "/etc"}'],
    ['args.list.length == 1', '{"list": [1]}'],
    ["args.x.value == '5'", '{"x": {"$typeName": "google.protobuf.Int32Value"}}'],
    ['args.x == 5', '{"x": {"$typeName": "google.protobuf.Int32Value", "value": 5}}'],
    [
      'args.x == 5',
      '{"x": {"$typeName": "google.protobuf.Value", "kind": {"case": "numberValue", "value": 5}}}',
    ],
    ['user.claims.constructor != 1', '{}'],
    ['user.claims.toString != 1', '{}'],
    ['has(user.claims.hasOwnProperty)', '{}'],
  ])(
    '§18.5 nothing is inherited, and no object is more than its members: %s with %s',
    async (when, args) => {
      expect(await holds(when, call(parse(args)))).toBe(false);
    },
  );

  test('§18.5 members with names of the prototype are members like any other', async () => {
    const args = parse('{"__proto__": {"a": 1}, "constructor": "c", "toString": 2}');
    expect(await holds("args['__proto__'].a == 1", call(args))).toBe(true);
    expect(await holds("args.constructor == 'c' && args.toString == 2", call(args))).toBe(true);
    expect(await holds('size(args) == 3', call(args))).toBe(true);
    const user = userWith(parse('{"__proto__": {"a": 1}, "constructor": "c"}'));
    expect(
      await holds("user.claims.__proto__.a == 1 && user.claims.constructor == 'c'", tool('x'), {
        user,
        clientId: undefined,
      }),
    ).toBe(true);
  });

  test.each([
    ['!has(args.force)', '{"force": null}', false],
    ["!('force' in args)", '{"force": null}', false],
    ['has(args.force) && args.force == null', '{"force": null}', true],
    ["!('force' in args.options)", '{"options": {}}', false],
    ["'force' in args.options", '{"options": ["force"]}', true],
    ['!has(args.options.force)', '{"options": {}}', true],
    ['!has(args.options.force)', '{"options": [{"force": 1}]}', false],
    ['!has(args.options.force)', '{"options": "force"}', false],
    ['!has(args.options.force)', '{"options": null}', false],
    ['!has(args.options) || !has(args.options.force)', '{"options": ["force"]}', false],
    ['user.groups.all(g, !has(user.claims.realm_access.roles.x))', '{}', false],
    ['args.count < 100', '{"count": -1e400}', false],
    ['args.count < 100', '{"count": -0}', true],
  ])(
    '§18.5 a member that is null is there, and what has no members is no object: %s with %s',
    async (when, args, expected) => {
      expect(await holds(when, call(parse(args)))).toBe(expected);
    },
  );

  test('§18.5 an expression sees so much of the arguments, and fails beyond', async () => {
    const long = 'a'.repeat(20_000);
    expect(await holds("args.path == 'x'", call({ path: 'x', content: long }))).toBe(true);
    expect(await holds("args.content != 'x'", call({ path: 'x', content: long }))).toBe(false);
    expect(await holds('size(args) == 2', call({ path: 'x', content: long }))).toBe(false);
    expect(await holds("args.content.matches('a')", call({ content: 'a'.repeat(1024) }))).toBe(
      true,
    );
    expect(await holds("args.content.matches('a')", call({ content: 'a'.repeat(1025) }))).toBe(
      false,
    );
    const list = (length: number) => call({ list: Array.from({ length }, () => 1) });
    expect(await holds('args.list.all(n, n == 1)', list(499))).toBe(true);
    expect(await holds('args.list.all(n, n == 1)', list(500))).toBe(false);
    const deep = parse(`{"a": ${'['.repeat(5000)}${']'.repeat(5000)}}`);
    expect(await holds('size(args.a) == 1', call(deep))).toBe(false);
    expect(await holds('!has(args.b)', call(deep))).toBe(true);
  });

  test('§18.5 an expression sees so much of the annotations of a tool, and fails beyond', async () => {
    const annotations = { readOnlyHint: true, title: 'a'.repeat(20_000) };
    expect(await holds('tool.annotations.readOnlyHint', tool('x', { annotations }))).toBe(true);
    expect(await holds("tool.annotations.title != 'x'", tool('x', { annotations }))).toBe(false);
  });
});

describe('attacks: expressions that take long', () => {
  test.each<[string, RegExp]>([
    ['true && '.repeat(400).concat('true'), /at most 2000 characters/],
    [`${'('.repeat(900)}true${')'.repeat(900)}`, /not CEL, or it is nested too deeply/],
    [`${'['.repeat(70)}1${']'.repeat(70)} == []`, /is nested more than 64/],
    ['args.a.all(x, args.b.all(y, x == y))', /inside one another/],
    ['args.a.exists(x, x.exists(y, y.all(z, z == 1)))', /inside one another/],
    ['user.groups.exists(x, user.groups.exists(y, x == y))', /inside one another/],
    ['args.a.all(x, x in args.a)', /uses args inside/],
    ['args.a.all(x, [args][0].b == x)', /uses args inside/],
    ['args.a.all(x, x in tool.annotations.list)', /uses tool inside/],
    ['args.a.map(x, x + x).exists(x, true)', /map or filter/],
    ['args.a.filter(x, true) == []', /map or filter/],
    ['args.a.map(x, true, x) == []', /map or filter/],
    ['args.text.matches(args.pattern)', /literal pattern/],
    ["args.text.matches('a' + 'b')", /literal pattern/],
    ["matches(args.text, 'a')", /literal pattern/],
    ["args.text.matches('(a{1000}){1000}')", /not an RE2 regular expression/],
    ["args.text.matches('(a{1,200}b){3}')", /too large/],
    ["args.text.matches('(?=a)')", /not an RE2 regular expression/],
    ["args.text.matches('(a)\\\\1')", /not an RE2 regular expression/],
    ["args.text.matches('(')", /not an RE2 regular expression/],
    ['cel.bind(a, args, a.path == 1)', /bind cannot be used/],
    ['{"a": args} == {"a": 1}', /builds an object/],
    ['google.protobuf.Struct{} == args', /builds an object/],
    ['args.exists(user, user == 1)', /cannot be the variable/],
    ['args.exists(args, args == 1)', /cannot be the variable/],
    ['user.emial == "x"', /no member "emial". Did you mean email\?/],
    ['usr.email == "x"', /"usr" is unknown. Did you mean user\?/],
    [
      'args.path.startWith("/")',
      /startWith cannot be used in conditions. Did you mean startsWith\?/,
    ],
    ['timestamp(args.at) > timestamp(args.at)', /timestamp cannot be used/],
    ['args.a.exists(x.y, true)', /exists is not used correctly/],
    ['user.email.', /not CEL: line 1, character 11/],
    ["user.email == 'x", /not CEL/],
    ['', /not CEL/],
  ])('§18.5 it is refused at start: %s', async (when, message) => {
    expect(await problemsOf(when)).toEqual(
      expect.arrayContaining([expect.stringMatching(message)]),
    );
    // Loaded all the same, it allows nothing.
    const rules = [rule({ when, may: ['*'] })];
    expect((await decide(rules, tool('x'), caller)).kind).toBe('denied');
    expect((await decide(rules, call({}), caller)).kind).toBe('denied');
  });

  test.each([
    ['(a+)+$', 'a'],
    ['^(a|aa)+$', 'a'],
    ['^(([a-z])+.)+[A-Z]([a-z])+$', 'a'],
    ['(.*)(.*)(.*)(.*)(.*)[^a]$', 'a'],
    ['(x+x+)+y', 'x'],
    ['(a?){30}a{30}$', 'a'],
  ])(
    '§18.5 a regular expression that tries again elsewhere for minutes is done at once here: %s',
    async (pattern, letter) => {
      const when = `!args.text.matches('${pattern}') || true`;
      const rules = await createRules({ clock: manualClock(NOW) }, [rule({ when })]);
      const item = call({ text: `${letter.repeat(1022)}!` });
      for (let time = 0; time < 20; time += 1)
        expect(rules.decide(item, caller).kind).toBe('allowed');
    },
  );
});

describe('what is remembered', () => {
  const inOneHour = { ...ANN, exp: NOW / 1000 + 3600 };

  test('§18.5 a decision is of its token and client: another one is decided anew', async () => {
    const rules = await createRules({ clock: manualClock(NOW) }, [
      rule({ who: { groups: ['staff'] }, may: ['a'] }),
      rule({ who: { clients: ['c*'] }, may: ['b'] }),
    ]);
    const judge = (name: string, claims: object, token: string, clientId?: string) =>
      rules.decide(tool(name), { user: userWith({ ...inOneHour, ...claims }, token), clientId })
        .kind;
    for (let time = 0; time < 3; time += 1) {
      expect(judge('a', {}, 'one')).toBe('allowed');
      expect(judge('a', { groups: [] }, 'two')).toBe('denied');
      expect(judge('b', {}, 'one', 'cursor')).toBe('allowed');
      expect(judge('b', {}, 'one', 'other')).toBe('denied');
      expect(judge('b', {}, 'one')).toBe('denied');
      expect(judge('a', {}, 'one', 'cursor')).toBe('allowed');
    }
  });

  test('§18.5 a user object of one request keeps to its own client', async () => {
    const rules = await createRules(
      {
        clock: manualClock(NOW),
      },
      [rule({ who: { clients: ['c*'] } })],
    );
    const user = userWith(inOneHour);
    expect(rules.decide(tool('x'), { user, clientId: 'cursor' }).kind).toBe('allowed');
    expect(rules.decide(tool('x'), { user, clientId: undefined }).kind).toBe('denied');
    expect(rules.decide(tool('x'), { user, clientId: 'cursor' }).kind).toBe('allowed');
  });

  test('§18.5 tools, prompts and resources of the same name are decided apart', async () => {
    const rules = await createRules({ clock: manualClock(NOW) }, [rule({ may: ['prompt:x'] })]);
    const who: PolicyCaller = { user: userWith(inOneHour), clientId: undefined };
    for (let time = 0; time < 2; time += 1) {
      expect(rules.decide(prompt('x'), who).kind).toBe('allowed');
      expect(rules.decide(tool('x'), who).kind).toBe('denied');
      expect(rules.decide(resource('x'), who).kind).toBe('denied');
    }
  });

  test('§18.5 a tool that changes what it says of itself is decided anew', async () => {
    const rules = await createRules(
      {
        clock: manualClock(NOW),
      },
      [rule({ when: 'tool.annotations.readOnlyHint' })],
    );
    const who: PolicyCaller = { user: userWith(inOneHour), clientId: undefined };
    const judge = (annotations: JsonObject) => rules.decide(tool('x', { annotations }), who).kind;
    expect(judge({ readOnlyHint: true })).toBe('allowed');
    expect(judge({ readOnlyHint: true })).toBe('allowed');
    expect(judge({ readOnlyHint: false })).toBe('denied');
    expect(judge({})).toBe('denied');
    expect(judge({ destructiveHint: true })).toBe('denied');
    expect(judge({ readOnlyHint: true, title: 'x' })).toBe('allowed');
  });

  test('§18.5 a tool that comes from another server is decided anew', async () => {
    const rules = await createRules(
      {
        clock: manualClock(NOW),
      },
      [rule({ when: "tool.server == 'good'" })],
    );
    const who: PolicyCaller = { user: userWith(inOneHour), clientId: undefined };
    expect(rules.decide(tool('x', { server: 'good' }), who).kind).toBe('allowed');
    expect(rules.decide(tool('x', { server: 'evil' }), who).kind).toBe('denied');
  });

  test('§18.5 what is remembered ends with the token, and is bounded', async () => {
    const clock = manualClock(NOW);
    const openMemory = createRuleMemory<number, undefined>(clock, () => undefined);
    const open = (token: string, exp: unknown) =>
      openMemory({ user: userWith({ exp }, token), clientId: undefined });
    const inOneMinute = NOW / 1000 + 60;
    open('one', inOneMinute).remember(tool('x'), 1);
    expect(open('one', inOneMinute).find(tool('x'))).toBe(1);
    expect(open('one', inOneMinute).find(prompt('x'))).toBeUndefined();
    expect(open('two', inOneMinute).find(tool('x'))).toBeUndefined();
    clock.advance(60_000);
    for (const exp of [inOneMinute, undefined, '9999999999']) {
      expect(open('one', exp).find(tool('x'))).toBeUndefined();
      open('one', exp).remember(tool('x'), 1);
      expect(open('one', exp).find(tool('x'))).toBeUndefined();
    }

    const later = NOW / 1000 + 3600;
    open('first', later).remember(tool('x'), 1);
    open('last', later).remember(tool('long'.repeat(100)), 1);
    expect(open('last', later).find(tool('long'.repeat(100)))).toBeUndefined();
    for (let at = 0; at < 100_001; at += 1) open('last', later).remember(tool(`made-up-${at}`), 1);
    expect(open('first', later).find(tool('x'))).toBeUndefined();
    expect(open('last', later).find(tool('made-up-0'))).toBeUndefined();
  });
});
