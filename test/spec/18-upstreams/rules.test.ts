// §18.5: who may use what: rules without conditions.

import { describe, expect, test } from 'vitest';
import { checkRules } from '../../../src/control/rules/rule-config.ts';
import type { RuleConfig } from '../../../src/control/rules/rules.ts';
import { decide, prompt, resource, rule, tool, userWith } from '../../support/upstreams/rules.ts';

const allows = async (may: readonly string[], item: Parameters<typeof decide>[1]) =>
  (await decide([rule({ may })], item)).kind === 'allowed';

describe('what a rule is about', () => {
  test('§18.5 without a rule everything is allowed', async () => {
    expect((await decide([], tool('github__delete_repo'))).kind).toBe('allowed');
    expect((await decide([], resource('file:///x/../y'))).kind).toBe('allowed');
  });

  test('§18.5 with any rule, what no rule allows is denied; rules add up', async () => {
    const rules = [rule({ may: ['a__*'] }), rule({ may: ['b__read'] })];
    expect((await decide(rules, tool('a__x'))).kind).toBe('allowed');
    expect((await decide(rules, tool('b__read'))).kind).toBe('allowed');
    expect((await decide(rules, tool('b__write'))).kind).toBe('denied');
    expect((await decide(rules, prompt('a__x'))).kind).toBe('denied');
  });

  test.each([
    ['files__read_*', 'files__read_file', true],
    ['files__read_*', 'files__read_', true],
    ['files__read_*', 'files__read', false],
    ['files__read_*', 'xfiles__read_file', false],
    ['*', 'anything at all/…', true],
    ['*_file', 'read_file', true],
    ['*_file', 'read_file_', false],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'acb', false],
    ['a**c', 'abc', true],
    ['*ab*ba*', 'aba', false],
    ['*ab*ba*', 'abba', true],
    ['ab*ba', 'aba', false],
    ['?', 'x', true],
    ['?', '', false],
    ['?', 'xy', false],
    ['?', '😀', true],
    ['??', '😀', false],
    ['a?c*', 'abcd', true],
    ['*a?c', 'xxa😀c', true],
    ['*a?c*z', 'xac-abc-z', true],
    ['*?', '😀', true],
    ['a?*?b', 'a😀b', false],
    ['a?*?b', 'a😀xb', true],
    ['[ab]{1}.+(x)|^$\\', '[ab]{1}.+(x)|^$\\', true],
    ['[ab]', 'a', false],
    ['a.c', 'abc', false],
  ])('§18.5 the pattern %s and the tool %s: %s', async (pattern, name, expected) => {
    expect(await allows([pattern], tool(name))).toBe(expected);
  });

  test('§18.5 a pattern is about tools, prompts or resources, never two of them', async () => {
    expect(await allows(['*'], prompt('greeting'))).toBe(false);
    expect(await allows(['*'], resource('config://server'))).toBe(false);
    expect(await allows(['prompt:*'], prompt('greeting'))).toBe(true);
    expect(await allows(['prompt:*'], tool('greeting'))).toBe(false);
    expect(await allows(['prompt:*'], tool('prompt:greeting'))).toBe(false);
    expect(await allows(['resource:*'], resource('config://server'))).toBe(true);
    expect(await allows(['resource:*'], prompt('config://server'))).toBe(false);
    expect(await allows(['resource:config://*'], resource('config://{name}'))).toBe(true);
  });
});

describe('attacks: names', () => {
  test.each([
    ['another case', 'Files__read'],
    ['a Cyrillic letter that looks the same', 'fil\u0435s__read'],
    ['full-width letters', 'ｆｉｌｅｓ__read'],
    ['an invisible character', 'files\u200b__read'],
    ['a space after it', 'files__read '],
    ['a line break after it', 'files__read\n'],
    ['a zero after it', 'files__read\0'],
    ['percent-encoding, which names do not have', 'files__%72ead'],
    ['something before it', 'evil__files__read'],
    ['something after it', 'files__read_all'],
  ])('§18.5 a tool does not pass a rule by %s', async (_how, name) => {
    expect(await allows(['files__read'], tool('files__read'))).toBe(true);
    expect(await allows(['files__read'], tool(name))).toBe(false);
  });

  test('§18.5 composed and decomposed characters are two names', async () => {
    expect(await allows(['caf\u00e9'], tool('caf\u00e9'))).toBe(true);
    expect(await allows(['caf\u00e9'], tool('cafe\u0301'))).toBe(false);
    expect(await allows(['resource:x:caf\u00e9'], resource('x:cafe\u0301'))).toBe(false);
  });

  test('§18.5 a name that is made to be slow is decided at once', async () => {
    const item = tool('a'.repeat(8000));
    const pattern = `${'*a?'.repeat(160)}*b`;
    const start = performance.now();
    for (let time = 0; time < 20; time += 1) expect(await allows([pattern], item)).toBe(false);
    // One that tries again from the start would need longer than the universe is old.
    expect(performance.now() - start).toBeLessThan(20_000);
  });
});

describe('attacks: URIs', () => {
  test.each([
    ['config://server', 'config://server', true],
    ['config://a b', 'config://a%20b', true],
    ['config://é', 'config://%C3%A9', true],
    ['file:///docs/*', 'file:///docs/a%2Fb.txt', true],
    ['file:///docs/*', 'file:///docs/.hidden/..b/c..', true],
    ['repo://{owner}/*', 'repo://{owner}/{name}', true],
    ['repo://acme/*', 'repo://{owner}/{name}', false],
    ['file:///docs/*', 'file:///docs/../etc/passwd', false],
    ['file:///docs/*', 'file:///docs/./../etc', false],
    ['file:///docs/*', 'file:///docs/..', false],
    ['file:///docs/*', 'file:///docs/%2e%2e/etc/passwd', false],
    ['file:///docs/*', 'file:///docs/%2E%2E%2Fetc', false],
    ['file:///docs/*', 'file:///docs/%252e%252e/etc', false],
    ['file:///docs/*', 'file:///docs/..\\etc', false],
    ['file:///docs/*', 'file:///docs/..%5Cetc', false],
    ['file:///docs/*', 'file:///docs/..;x/etc', false],
    ['file:///docs/*', 'file:///docs/x?path=../etc', false],
    ['file:///docs/*', 'file:///docs/\uff0e\uff0e/etc', false],
    ['file:///docs/*', 'file:///docs/a\u2025/etc', true],
    ['file:///docs/*', 'file:///docs/\u2025/etc', false],
    ['file:///docs/*', 'file:///docs/x\uff0f..\uff0fetc', false],
    ['file:///docs/*', 'file:///docs/.%09./etc', false],
    ['file:///docs/*', 'file:///docs/.\n./etc', false],
    ['file:///docs/*', 'file:///docs/a%00.txt', false],
    ['file:///docs/*', 'file:///docs/.. /etc', false],
    ['file:///docs/*', 'file:///docs/%C0%AE%C0%AE/etc', false],
    ['file:///docs/*', 'file:///docs/%', false],
    ['file:///docs/*', 'file:///docs/%zz', false],
    ['file:///docs/*', 'file:///docs/\ud800', false],
    ['file:///docs/*', 'FILE:///docs/a', false],
    ['file:///docs/*', 'file:///DOCS/a', false],
    ['file:///docs/*', 'file:/docs/a', false],
    ['file:///docs/*', ' file:///docs/a', false],
    ['file:///docs/*', 'file:///docsx/a', false],
    ['https://good.example/*', 'https://good.example%2F@evil.example/', false],
    ['https://good.example/*', 'https://good.example%2f.evil.example/', false],
    ['https://good.example/*', 'https://good.example@evil.example/', false],
    ['https://good.example/*', 'https:\\\\good.example%2F@evil.example/', false],
  ])('§18.5 the pattern resource:%s and the URI %s: %s', async (pattern, uri, expected) => {
    expect(await allows([`resource:${pattern}`], resource(uri))).toBe(expected);
  });

  test.each(['file:///docs/../etc', 'x:%', 'x:%2525', `x:${'a'.repeat(9000)}`])(
    '§18.5 what cannot be decided fits nothing, not even *: %s',
    async (uri) => {
      expect(await allows(['resource:*'], resource(uri))).toBe(false);
    },
  );
});

describe('who', () => {
  const who = (subject: RuleConfig['who']) => [rule({ who: subject, may: ['*'] })];
  const isAllowed = async (subject: RuleConfig['who'], claims: object, clientId?: string) =>
    (await decide(who(subject), tool('x'), { user: userWith(claims), clientId })).kind ===
    'allowed';

  test.each<[RuleConfig['who'], object, boolean]>([
    [{ groups: ['a', 'b'] }, { groups: ['b'] }, true],
    [{ groups: ['a', 'b'] }, { groups: ['c'] }, false],
    [{ groups: ['a'] }, { groups: ['A'] }, false],
    [{ groups: ['a'] }, {}, false],
    [{ groups: ['a'] }, { groups: 'a' }, false],
    [{ groups: ['a'] }, { groups: { 0: 'a', length: 1 } }, false],
    [{ groups: ['1'] }, { groups: [1] }, false],
    [{ claims: { dept: 'x' } }, { dept: 'x' }, true],
    [{ claims: { dept: 'x' } }, { dept: 'X' }, false],
    [{ claims: { dept: ['x', 'y'] } }, { dept: 'y' }, true],
    [{ claims: { roles: 'admin' } }, { roles: ['user', 'admin'] }, true],
    [{ claims: { roles: ['admin', 'boss'] } }, { roles: ['user'] }, false],
    [{ claims: { email_verified: true } }, { email_verified: true }, true],
    [{ claims: { email_verified: true } }, { email_verified: 'true' }, false],
    [{ claims: { level: 3 } }, { level: '3' }, false],
    [{ claims: { level: 3 } }, { level: 3 }, true],
    [{ claims: { a: 'x', b: 'y' } }, { a: 'x' }, false],
    [{ claims: { a: 'x', b: 'y' } }, { a: 'x', b: 'y' }, true],
    [
      { claims: { realm_access: { roles: 'admin' } } },
      { realm_access: { roles: ['admin'] } },
      true,
    ],
    [{ claims: { 'realm_access.roles': 'admin' } }, { realm_access: { roles: ['admin'] } }, false],
    [{ claims: { 'https://x.example/role': 'a' } }, { 'https://x.example/role': 'a' }, true],
    [{ claims: { realm_access: { roles: 'admin' } } }, { realm_access: 'roles' }, false],
    [{ claims: { realm_access: { roles: 'admin' } } }, { realm_access: ['admin'] }, false],
    [{ claims: { toString: { name: 'toString' } } }, {}, false],
    [{ claims: { constructor: { name: 'Object' } } }, {}, false],
    [{ claims: { name: { length: 3 } } }, { name: 'abc' }, false],
    [{ claims: { list: { length: 1 } } }, { list: ['a'] }, false],
    [{ claims: { a: null } }, { a: null }, false],
    [{ claims: {} }, { a: 1 }, false],
    [{ claims: { a: {} } }, { a: {} }, false],
    [{ claims: { a: [] } }, { a: [] }, false],
    [{ claims: { a: 'x' } }, { a: { 0: 'x' } }, false],
    [{ claims: { a: 'x' } }, { a: [['x']] }, false],
    [{}, {}, false],
    [{ groups: [] }, { groups: [] }, false],
    [{ scopes: [] }, { scope: '' }, false],
    [{ groups: ['a'], claims: { dept: 'x' } }, { groups: ['a'], dept: 'x' }, true],
    [{ groups: ['a'], claims: { dept: 'x' } }, { groups: ['a'] }, false],
    [{ groups: ['a'], claims: { dept: 'x' } }, { dept: 'x' }, false],
  ])('§18.5 who %j, claims %j: %s', async (subject, claims, expected) => {
    expect(await isAllowed(subject, claims)).toBe(expected);
  });

  test('§18.5 names of the prototype are names like any other, if the token has them itself', async () => {
    const claims: object = JSON.parse('{"__proto__": {"admin": true}}');
    const wanted = JSON.parse('{"__proto__": {"admin": true}}');
    expect(await isAllowed({ claims: wanted }, claims)).toBe(true);
    expect(await isAllowed({ claims: wanted }, {})).toBe(false);
    expect(await isAllowed({ claims: { admin: true } }, claims)).toBe(false);
  });

  test('§18.5 clients are globs over the client ID, which has to be known', async () => {
    const subject = { clients: ['cursor-*', 'https://app.example/*'] };
    expect(await isAllowed(subject, {}, 'cursor-1')).toBe(true);
    expect(await isAllowed(subject, {}, 'https://app.example/client.json')).toBe(true);
    expect(await isAllowed(subject, {}, 'Cursor-1')).toBe(false);
    expect(await isAllowed(subject, {}, 'x')).toBe(false);
    expect(await isAllowed(subject, {}, undefined)).toBe(false);
    expect(await isAllowed({ clients: ['*'] }, {}, undefined)).toBe(false);
  });

  test('§18.5 without a user only rules for everyone hold', async () => {
    const judge = (subject: RuleConfig['who']) =>
      decide(who(subject), tool('x'), { user: undefined, clientId: undefined });
    expect((await judge('everyone')).kind).toBe('allowed');
    expect((await judge({ groups: ['a'] })).kind).toBe('denied');
    expect((await judge({ claims: { a: 'x' } })).kind).toBe('denied');
    expect((await judge({ scopes: ['a'] })).kind).toBe('denied');
  });
});

describe('scopes', () => {
  const scoped = [
    rule({ who: { groups: ['staff'] }, may: ['read_*'] }),
    rule({ who: { scopes: ['files:write', 'files:all'], groups: ['staff'] }, may: ['write_*'] }),
    rule({ who: { scopes: ['files:all'] }, may: ['*'] }),
  ];
  const judge = (name: string, claims: object) =>
    decide(scoped, tool(name), { user: userWith(claims), clientId: undefined });

  test.each([
    ['a text', { scope: 'openid files:write' }],
    ['a list', { scope: ['openid', 'files:write'] }],
    ['scp as a list', { scp: ['files:write'] }],
    ['scp as a text', { scp: 'files:write' }],
    ['scope beside scp', { scope: 'openid', scp: ['files:write'] }],
    ['another one that is enough', { scope: 'files:all' }],
  ])('§18.5 the scopes of a token may be %s', async (_how, claims) => {
    expect((await judge('write_file', { groups: ['staff'], ...claims })).kind).toBe('allowed');
  });

  test.each([
    [{ scope: 'Files:write' }],
    [{ scope: 'files:write2 xfiles:write' }],
    [{ scope: ['files:write', 1] }],
    [{ scope: { 'files:write': true } }],
    [{ scope: ['openid files:write'] }],
    [{ scope: 'openid\tfiles:write' }],
    [{ scope: 7 }],
    [{}],
  ])('§18.5 these claims do not have the scope: %j', async (claims) => {
    expect(await judge('write_file', { groups: ['staff'], ...claims })).toMatchObject({
      kind: 'scopes_missing',
      scopes: ['files:write'],
    });
  });

  test('§18.5 only scopes are asked for, of the first rule where nothing else is missing', async () => {
    expect((await judge('read_file', { groups: ['staff'] })).kind).toBe('allowed');
    expect(await judge('read_file', {})).toMatchObject({
      kind: 'scopes_missing',
      scopes: ['files:all'],
    });
    const strict = [rule({ who: { scopes: ['a'], groups: ['staff'] }, may: ['*'] })];
    expect(
      (await decide(strict, tool('x'), { user: userWith({}), clientId: undefined })).kind,
    ).toBe('denied');
  });
});

describe('what is wrong with rules', () => {
  test.each<[string, Partial<RuleConfig>, RegExp]>([
    ['a kind without a pattern', { may: ['prompt:'] }, /names nothing/],
    ['a kind that there is not', { may: ['resources:x'] }, /prompt: or resource:/],
    ['a kind in another case', { may: ['Prompt:x'] }, /prompt: or resource:/],
    ['tools have no kind', { may: ['tool:x'] }, /tools have none/],
    ['a long pattern', { may: ['x'.repeat(513)] }, /at most 512/],
    ['a control character', { may: ['a\nb'] }, /control character/],
    ['an encoded URI', { may: ['resource:x:a%20b'] }, /can never fit/],
    ['a URI with ..', { may: ['resource:file:///a/../b'] }, /can never fit/],
    ['no claim', { who: { claims: {} } }, /who\.claims is empty/],
    [
      'no claim of a claim',
      { who: { claims: { a: { b: {} } } } },
      /who\.claims\["a"\]\["b"\] is empty/,
    ],
    ['two scopes in one', { who: { scopes: ['a b'] } }, /not one scope/],
    ['a long client', { who: { clients: ['x'.repeat(513)] } }, /who\.clients/],
  ])('§18.5 a rule is refused at start: %s', async (_what, changes, message) => {
    const [problem, ...others] = await checkRules([{ ...rule({ may: ['*'] }), ...changes }]);
    expect(problem).toEqual({ place: 'rules[0]', message: expect.stringMatching(message) });
    expect(others).toEqual([]);
  });

  test('§18.5 all problems of all rules are told at once', async () => {
    const bad = rule({ who: { scopes: ['a b'], claims: {} }, may: ['prompt:', 'tool:x'] });
    expect(
      await checkRules([bad, rule({ may: ['a', 'prompt:b', 'resource:c:*'] }), bad]),
    ).toHaveLength(8);
  });
});
