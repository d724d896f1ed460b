// §26.4: the guards that come with the gateway.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { AskGuard } from '../../../src/control/guards/ask-guard.ts';
import { TooMuchForGuard } from '../../../src/control/guards/ask-guard.ts';
import { type BuiltInGuard, createRunWork } from '../../../src/control/guards/define-guard.ts';
import { linksGuard } from '../../../src/control/guards/links.ts';
import { secretsGuard } from '../../../src/control/guards/secrets.ts';
import { sizeGuard } from '../../../src/control/guards/size.ts';
import type { GuardUse } from '../../../src/mcp/calls/guards.ts';
import { Cancellation } from '../../../src/platform/cancellation.ts';
import { JsonNumber } from '../../../src/platform/exact-json.ts';
import { callTool } from '../../support/clients/stateless.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { sendJson, startRawServer } from '../../support/upstreams/raw-server.ts';

/** Made up; put together here, so that no scanner of a repository takes them for real ones. */
const letters = (count: number, alphabet = 'aB3dE5gH7jK9mN2pQ4sT6vW8yZ') =>
  alphabet.repeat(Math.ceil(count / alphabet.length)).slice(0, count);
const hex = (count: number) => letters(count, '0a1b2c3d4e5f6789');

const SECRETS = {
  'aws-access-key': `AKIA${letters(16, 'ABCDEFGH234567')}`,
  'aws-secret-key': `aws_secret_access_key = ${letters(40)}`,
  'github-token': `ghp_${letters(36)}`,
  'gitlab-token': `glpat-${letters(20)}`,
  'slack-token': `xoxb-${letters(40, '1234567890-abc')}`,
  'slack-webhook': `https://hooks.slack.com/services/T00000000/B00000000/${letters(24)}`,
  'stripe-key': `sk_live_${letters(24)}`,
  'anthropic-key': `sk-ant-api03-${letters(90)}`,
  'openai-key': `sk-proj-${letters(100)}`,
  'google-api-key': `AIza${letters(35)}`,
  'npm-token': `npm_${letters(36)}`,
  'pypi-token': `pypi-AgEIcHlwaS5vcmc${letters(80)}`,
  'hugging-face-token': `hf_${letters(34, 'abcdefghijKLMNOP')}`,
  'sendgrid-key': `SG.${letters(22)}.${letters(43)}`,
  'digitalocean-token': `dop_v1_${hex(64)}`,
  'databricks-token': `dapi${hex(32)}`,
  'shopify-token': `shpat_${hex(32)}`,
  'vault-token': `hvs.${letters(90)}`,
  'azure-account-key': `AccountKey=${letters(86)}==`,
  'azure-client-secret': `abc8Q~${letters(34)}`,
  'terraform-token': `${letters(14)}.atlasv1.${letters(67)}`,
  'telegram-token': `123456789:AA${letters(33)}`,
  'private-key': `-----BEGIN RSA PRIVATE KEY-----\nMIIE${letters(64)}\n-----END RSA PRIVATE KEY-----`,
  'json-web-token': `eyJ${letters(20)}.eyJ${letters(40)}.${letters(43)}`,
  password: 'postgres://admin:correct-horse@db.example.com/main',
  'bearer-token': `Authorization: Bearer ${letters(40)}`,
} as const;

const MESSAGE = {
  guard: 'g',
  on: 'tools/result',
  method: 'tools/call',
  server: '',
  phase: 'response',
} as const;

/** By a clock that stands still, so that what is short is always judged at once. */
function openGuard<Use extends GuardUse>(
  { createJudge }: BuiltInGuard<Use>,
  use: Use,
  monotonic = () => 0,
): AskGuard {
  const judgeMessage = createJudge(use);
  const runWork = createRunWork({ monotonic });
  return (message, turn) => runWork(judgeMessage(message), turn);
}

type Action = 'redact' | 'refuse';

const createSecretsGuard = (action: Action) => openGuard(secretsGuard, { kind: 'secrets', action });
const createSizeGuard = (maxBytes: number) => openGuard(sizeGuard, { kind: 'size', maxBytes });
const createLinksGuard = (use: Parameters<(typeof linksGuard)['createJudge']>[0]) =>
  openGuard(linksGuard, use);

/** What a guard makes of a value, at once where it is short. */
const judge = (guard: AskGuard, value: unknown, phase: 'request' | 'response' = 'response') =>
  guard({ ...MESSAGE, value, phase }, { signal: undefined, user: undefined });

test.each(Object.entries(SECRETS))(
  '§26.4 secrets finds a %s wherever it stands',
  (name, secret) => {
    const value = {
      content: [{ type: 'text', text: `before "${secret}" after` }],
      structuredContent: { deep: [{ it: secret }], [secret]: 'as a name' },
      blobs: { blob: Buffer.from(`in bytes: ${secret}\n`).toString('base64') },
    };
    const decision = judge(createSecretsGuard('redact'), value);
    expect(decision).toMatchObject({ kind: 'change' });
    const { value: redacted } = decision as { value: typeof value };
    const core = secret.slice(-24);
    const decoded = Buffer.from(redacted.blobs.blob, 'base64').toString();
    if (name !== 'password') expect(JSON.stringify(redacted)).not.toContain(core);
    expect(JSON.stringify(redacted)).not.toContain('correct-horse');
    expect(decoded).toContain(`[redacted:${name}]`);
    expect(redacted.content[0]?.text).toMatch(/^before ".*" after$/s);
    expect(judge(createSecretsGuard('refuse'), value)).toMatchObject({ kind: 'refuse' });
  },
);

const HARMLESS = [
  'The key is under the mat.',
  `commit ${hex(40)}`,
  `sha256:${hex(64)}`,
  '8f14e45f-ceea-467f-a8d5-7d0a8b2c1234',
  'https://example.com/path?query=1#fragment',
  'mailto:ada@example.com',
  'sk-learn and pk-something',
  'ask-me-anything',
  `data:image/png;base64,${letters(200)}`,
  'Bearer of bad news',
] as const;

const TOKEN = SECRETS['github-token'];
const REDACTED = '[redacted:github-token]';

/** Directly behind a letter that is none once the text is read. */
const HIDDEN = {
  'JSON in a text': `{"env":"A=1\\nB\\t${TOKEN}"}`,
  'codes of JSON': `"\\u0067${TOKEN.slice(1)}"`,
  'JSON in JSON': JSON.stringify(JSON.stringify(`x\n${TOKEN}`)),
  'an address': `?token%3D${TOKEN}`,
  'an address in an address': `?next=%2F%3Ftoken%253D${TOKEN}`,
  'JSON in an address': `?q=%22a%5Cn${TOKEN}%22`,
  Markdown: TOKEN.replace('_', '\\_'),
  'HTML by name': `a&Tab;${TOKEN.replace('_', '&lowbar;')}`,
  'HTML by number': TOKEN.replace('_', '&#0000000000095;').replace('g', '&#x67;'),
  'colours of a terminal': `\u001b[31m${TOKEN}\u001b[0m`,
  'colours in JSON': `{"line":"\\u001b[1;31m${TOKEN.slice(0, 9)}\\u001b[m${TOKEN.slice(9)}"}`,
  'colours as a shell writes them': `printf '\\033[31m${TOKEN} \\e[0m'`,
  'another set of characters of a terminal': `\u001b(B\u001b[m${TOKEN.slice(0, 9)}\u001b(B${TOKEN.slice(9)}`,
  'what a terminal keeps for itself': `${TOKEN.slice(0, 9)}\u001bPx\u001b\\${TOKEN.slice(9)}`,
  'colours in one byte': `${TOKEN.slice(0, 9)}\u009b31m${TOKEN.slice(9)}`,
  'bytes as Python prints them': `b'A=1\\x0a${TOKEN}'`,
  'a string of JavaScript': `'A\\v\\x67${TOKEN.slice(1)}'`,
} as const;

test.each(Object.entries(HIDDEN))('§26.4 secrets finds a key in %s', (_, text) => {
  const value = {
    content: [
      { type: 'text', text },
      { type: 'text', text: 'harmless' },
    ],
  };
  expect(judge(createSecretsGuard('redact'), value)).toEqual({
    kind: 'change',
    value: {
      content: [
        { type: 'text', text: REDACTED },
        { type: 'text', text: 'harmless' },
      ],
    },
  });
  expect(judge(createSecretsGuard('refuse'), value)).toMatchObject({ kind: 'refuse' });
});

test('§26.4 secrets leaves hashes below such a name alone', () => {
  const value = { awsKeyCommit: 'da39a3ee5e6b4b0d3255bfef95601890afd80709' };
  expect(judge(createSecretsGuard('redact'), value)).toEqual({ kind: 'pass' });
});

test('§26.4 secrets takes time for the end of a name alone, however many texts it stands over', async () => {
  const value = { [`${'aws key '.repeat(50_000)}aws_key`]: Array(2_000).fill(letters(40)) };
  const before = process.cpuUsage();
  expect(await judge(createSecretsGuard('refuse'), value)).toMatchObject({ kind: 'refuse' });
  // The product would be minutes.
  expect(process.cpuUsage(before).user).toBeLessThan(10_000_000);
});

test.each([
  ['aws_secret_access_key', letters(40)],
  ['AWS-Secret-Key', letters(40)],
  ['SecretAccessKey', letters(40)],
])('§26.4 secrets finds what is a key by the name of its member alone: %s', (name, key) => {
  const value = { structuredContent: { [name]: key, other: letters(40) } };
  expect(judge(createSecretsGuard('redact'), value)).toEqual({
    kind: 'change',
    value: { structuredContent: { [name]: '[redacted:aws-secret-key]', other: letters(40) } },
  });
  expect(judge(createSecretsGuard('refuse'), `{ "${name}": "${key}" }`)).toMatchObject({
    kind: 'refuse',
  });
});

test.each([
  ['little-endian', (text: Buffer) => text],
  ['big-endian', (text: Buffer) => text.swap16()],
])('§26.4 secrets finds a key in bytes that are a text in UTF-16, %s', (_, write) => {
  const encode = (text: string) => write(Buffer.from(`\ufeff${text}`, 'utf16le'));
  const guard = createSecretsGuard('redact');
  const decision = judge(guard, { blob: encode(`ü=${TOKEN}\n`).toString('base64') });
  expect(decision).toMatchObject({ kind: 'change' });
  const [, blob = ''] = /"blob":"([^"]*)"/.exec(JSON.stringify(decision)) ?? [];
  expect(Buffer.from(blob, 'base64').toString('utf16le')).toBe(`\ufeffü=${REDACTED}\n`);
  // Bytes are given as they are where nothing is in them; and whoever reads them as another text finds nothing either.
  expect(judge(guard, { blob: encode('harmless').toString('base64') })).toEqual({ kind: 'pass' });
  const mixed = Buffer.concat([encode('ü'), Buffer.from(`==${TOKEN}=`), encode(`=${TOKEN}`)]);
  const both = JSON.stringify(judge(guard, { blob: mixed.toString('base64') }));
  const left = Buffer.from(/"blob":"([^"]*)"/.exec(both)?.[1] ?? '', 'base64');
  expect(left.toString('latin1')).not.toContain(TOKEN);
  expect(left.toString('utf16le')).not.toContain(TOKEN);
});

test('§26.4 secrets redacts a key alone where it stands in the text itself, escaped or not', () => {
  const key = SECRETS['private-key'];
  const value = { text: `${JSON.stringify({ key })} and\\n=${TOKEN}` };
  expect(judge(createSecretsGuard('redact'), value)).toEqual({
    kind: 'change',
    value: { text: `{"key":"[redacted:private-key]"} and\\n=${REDACTED}` },
  });
});

test('§26.4 secrets leaves nothing of a key that goes on behind an escape', () => {
  const [begin, end] = [letters(24), letters(40, 'zyxwvutsrq')];
  const value = { text: `"Authorization: Bearer ${begin}\\/${end}"` };
  expect(JSON.stringify(judge(createSecretsGuard('redact'), value))).not.toContain(end);
});

test('§26.4 secrets finds a key that is there once as it is, and once behind an escape', () => {
  const value = { text: `=${TOKEN} and \\n${TOKEN}` };
  expect(judge(createSecretsGuard('redact'), value)).toEqual({
    kind: 'change',
    value: { text: REDACTED },
  });
  // Where the first is read as a part of a word, and the second is not.
  const other = { text: `&#97;${TOKEN} &#10${TOKEN}` };
  expect(JSON.stringify(judge(createSecretsGuard('redact'), other))).not.toContain(TOKEN);
});

test.each([
  ['line breaks', (base64: string) => base64.replace(/.{20}/g, '$&\r\n')],
  ['spaces', (base64: string) => base64.replace(/.{4}/g, '$& ')],
  ['what is no base64', (base64: string) => `=${base64.replace(/.{8}/g, '$&!=')}`],
])('§26.4 secrets finds a key in base64 with %s', (_, write) => {
  for (const name of ['blob', 'data']) {
    const value = { [name]: write(Buffer.from(`in bytes:\n${TOKEN}`).toString('base64')) };
    const redacted = Buffer.from(`in bytes:\n${REDACTED}`).toString('base64');
    expect(judge(createSecretsGuard('redact'), value)).toEqual({
      kind: 'change',
      value: { [name]: redacted },
    });
  }
});

test.each([40_960, 81_920, 100_000])(
  '§26.4 secrets finds a key at every place of a long text, around character %i, and each once',
  async (around) => {
    const guard = createSecretsGuard('redact');
    for (let at = around - 1_100; at <= around + 60; at += 35) {
      for (const [filler, hidden] of [
        ['word ', ` ${TOKEN} `],
        ['w', `=${TOKEN}=`],
      ] as const) {
        const text =
          filler.repeat(at / filler.length) + hidden + filler.repeat(60_000 / filler.length);
        expect(await judge(guard, { text })).toEqual({
          kind: 'change',
          value: { text: text.replace(TOKEN, REDACTED) },
        });
      }
    }
  },
);

test('§26.4 a long text holds nobody up: it is looked at in turns, and of two users in turns, too', async () => {
  const ask = (sub: string, characters: number) => {
    const value = { text: `${'\\n%41&amp;'.repeat(characters / 10)}\\n${TOKEN}` };
    const judged = guards[0]?.(
      { ...MESSAGE, value },
      { signal: undefined, user: { sub, token: '', claims: {} } },
    );
    return Promise.resolve(judged).then((decision) => {
      ended.push(sub);
      return decision;
    });
  };
  const guards = [createSecretsGuard('redact')];
  const ended: string[] = [];
  let turns = 0;
  const count = () => {
    turns += 1;
    watching = setImmediate(count);
  };
  let watching = setImmediate(count);
  const judged = await Promise.all([
    ask('ada', 1_000_000),
    ask('ada', 1_000_000),
    ask('bob', 100_000),
  ]);
  clearImmediate(watching);
  expect(judged).toEqual(Array(3).fill({ kind: 'change', value: { text: REDACTED } }));
  expect(ended).toEqual(['bob', 'ada', 'ada']);
  expect(turns).toBeGreaterThan(20);
});

test('§26.4 what nobody waits for any more is not looked at to its end, and does not pass', async () => {
  const signal = new Cancellation();
  const guard = createSecretsGuard('redact');
  const value = { text: 'nothing '.repeat(1_000_000) };
  const judging = guard({ ...MESSAGE, value }, { signal, user: undefined });
  signal.abort();
  await expect(judging).rejects.toThrow(TooMuchForGuard);
});

test.each(HARMLESS)('§26.4 secrets leaves %s as it is', (text) => {
  const value = { content: [{ type: 'text', text }] };
  expect(judge(createSecretsGuard('redact'), value)).toEqual({ kind: 'pass' });
});

test('§26.4 secrets takes time that grows with the text alone', async () => {
  const texts = ['-----BEGIN PRIVATE KEY-----', 'eyJa', 'a://b', 'aws key ', 'bearer ', 'ghp_'];
  const guard = createSecretsGuard('redact');
  for (const text of texts) {
    const before = process.cpuUsage();
    await judge(guard, text.repeat(100_000));
    // The square would be minutes.
    expect(process.cpuUsage(before).user).toBeLessThan(10_000_000);
  }
});

test.each([
  { text: 'See https://docs.example.com/a.', isFound: false },
  { text: '![x](https://evil.test/?q=secret)', isFound: true },
  { text: '[x](//evil.test/a)', isFound: true },
  { text: '\\\\evil.test\\share', isFound: true },
  { text: 'https:\\\\evil.test/a', isFound: true },
  { text: 'https://example.com@evil.test/', isFound: true },
  { text: 'https://evil.test#.example.com', isFound: true },
  { text: 'HTTPS://EVIL.TEST/', isFound: true },
  { text: 'https://sub.example.com/', isFound: false },
  { text: 'https://notexample.com/', isFound: true },
  { text: 'file:///etc/passwd and a // comment', isFound: false },
  // As browsers and Markdown read them.
  { text: '![x](http:evil.test/p)', isFound: true },
  { text: '![x](http:/evil.test/p)', isFound: true },
  { text: '![x](/\\evil.test/p)', isFound: true },
  { text: '![x](https:\\evil.test/p)', isFound: true },
  { text: '![x](////evil.test/p)', isFound: true },
  { text: '![x](http://[2001:db8::1]/p)', isFound: true },
  { text: '![x](https://example.com^@evil.test/p)', isFound: true },
  { text: "![x](https://example.com'@evil.test/p)", isFound: true },
  { text: '![x](https://example.com()@evil.test/p)', isFound: true },
  { text: '![x](https://example.com",@evil.test/p)', isFound: true },
  { text: '![x](&#47;&#x2F;evil.test/p)', isFound: true },
  { text: '![x](https&colon;&sol;&sol;evil.test/p)', isFound: true },
  { text: '![x](https://example.com&#64;evil.test/p)', isFound: true },
  { text: '![x](&#104;ttp:evil.test/p)', isFound: true },
  { text: '![x](https://example.com\\@evil.test/p)', isFound: true },
  { text: '![x](https://example.com\\.evil.test/p)', isFound: true },
  { text: '![x](https://example.com&period;evil.test/p)', isFound: true },
  { text: '![x](https:&#x0002f;/evil.test/p)', isFound: true },
  { text: 'https://example.com/?a&period=//b&tab=c&sol=//d', isFound: false },
  { text: '{"md":"![x](https://example.com\\\\@evil.test/p)"}', isFound: true },
  { text: '![x](https:%2F%2Fevil.test%2Fp)', isFound: true },
  { text: 'h\nttps://evil.test/p', isFound: true },
  { text: '![x](ht\ttps://evil.test/p)', isFound: true },
  { text: '![x](https:/\t/evil.test/p)', isFound: true },
  { text: '![x](https://example.com\n.evil.test/p)', isFound: true },
  { text: '<img src="https://example.com\r\n.evil.test/p">', isFound: true },
  { text: "<img src = 'https://example.com\t@evil.test/p'>", isFound: true },
  {
    text: `<img src="${' '.repeat(5_000)}https://example.com\n.evil.test/${'p'.repeat(5_000)}">`,
    isFound: true,
  },
  { text: '<https://example.com\t.evil.test/p>', isFound: true },
  { text: '[x](<//example.com\t.evil.test/p>)', isFound: true },
  { text: 'url(https://example.com\n.evil.test/p)', isFound: true },
  { text: '<img src="ht&Tab;tps://evil.test/p">', isFound: true },
  { text: '![x](https&NewLine;:evil.test/p)', isFound: true },
  { text: '<img src="https://example.com&NewLine;.evil.test/p">', isFound: true },
  { text: '<img src="https://example.com&#000000000000010;.evil.test/p">', isFound: true },
  { text: '{"html":"<img src=\\"ht\\ntps://evil.test/p\\">"}', isFound: true },
  { text: '[x]: /&Tab;/evil.test/p', isFound: true },
  { text: '[x]: <&sol;&NewLine;/evil.test/p>', isFound: true },
  { text: '[x]: /docs\n/more and [y]: https://example.com\n[z]: /a', isFound: false },
  // CSS.
  { text: '<p style="background:url(\\2f\\2f evil.test/p)">', isFound: true },
  { text: '@import "\\68ttps://evil.test/p"', isFound: true },
  { text: '<p style="background:url(http\\s://evil.test/p)">', isFound: true },
  { text: 'url(ht\\tps://evil.test/p)', isFound: true },
  { text: '@import "http\\s://evil.test/p"', isFound: true },
  { text: '@import "https://example.com\\\n.evil.test/p"', isFound: true },
  {
    text: 'url("https://example.com\\2f a\\.png") and \\e[34mhttps://example.com\\033[0m',
    isFound: false,
  },
  { text: '\u001b[34mhttps://example.com\u001b[0m https://example.com\\v1', isFound: false },
  // Strings of languages, and terminals.
  { text: 'fetch("\\x68ttps:\\57\\x2fevil.test")', isFound: true },
  { text: 'h\u001b[1mttps:/\u001b[m/evil.test/p', isFound: true },
  // Without quotes, white space of an attribute can only be one that was escaped.
  { text: '<img src=/&Tab;/evil.test/p>', isFound: true },
  { text: '<a href = &sol;&NewLine;&bsol;evil.test/p>', isFound: true },
  { text: '<img src=https:&#9;evil.test/p>', isFound: true },
  { text: '<img src=h&Tab;ttps&Tab;:/&#xA;/evil.test/p>', isFound: true },
  { text: '<a href=/&Tab;/example.com/p>', isFound: false },
  // GitHub Flavored Markdown.
  { text: 'www.evil.test/?q=secret', isFound: true },
  { text: '(_WWW.evil.test_) and www&period;evil.test', isFound: true },
  { text: 'www.example.com, https://example.com/www.evil and me@www.example', isFound: false },
  {
    text: 'https://example.com\nhttps://example.com\nand\thttps://example.com\tDone',
    isFound: false,
  },
  {
    text: '{"a":"https:\\/\\/example.com\\nmore","b":"https://example.com?q=a%20b%3Ac"}',
    isFound: false,
  },
  {
    text: '[a](https://example.com\n"Title") <a\nhref="https://example.com"\nid=b>',
    isFound: false,
  },
  { text: 'see a.https://evil.test/p, x-HTTPS:\\\\evil.test', isFound: true },
  { text: 'git+https://evil.test/p', isFound: true },
  // Names of HTML have one case: browsers read `?` here in neither, and `@` in both.
  { text: '![x](h&#116;tps://example.com&QUEST;@evil.test/p)', isFound: true },
  { text: '![x](h&#116;tps:&#X2F;/evil.test&QUOT;)', isFound: true },
  { text: '<img src="http:(@evil.test/p">', isFound: true },
  { text: '<img src=" https://example.com @evil.test/p">', isFound: true },
  { text: '[x](<https://example.com x@evil.test/p>)', isFound: true },
  { text: '<img src="http: x@evil.test/p">', isFound: true },
  { text: '![x](http:1\u3002evil.test/p) and http:1%2eevil.test', isFound: true },
  { text: 'http:80\u3002', isFound: false },
  {
    text: '"https://example.com/ and me@evil.example", (http:) {"http:"} http: me@a',
    isFound: false,
  },
  { text: 's3://bucket/a h2://a redis://cache.test', isFound: false },
  { text: 'https://example.com/@scope/a?b=1&amp;c=2 and me@evil.example', isFound: false },
  { text: 'http:80, https:443 and http: alone; <https://example.com> {"a":"//"}', isFound: false },
  { text: '//////////////// https://example.com', isFound: false },
])('§26.4 links: $text', ({ text, isFound }) => {
  const guard = createLinksGuard({
    kind: 'links',
    hosts: ['example.com', '*.example.com'],
    action: 'redact',
  });
  const decision = judge(guard, { content: [{ type: 'text', text }] });
  expect(decision).toMatchObject({ kind: isFound ? 'change' : 'pass' });
  if (isFound) expect(JSON.stringify(decision).toLowerCase()).not.toContain('evil.test');
});

test('§26.4 links: an address is one without its tabs and line feeds, where a member has nothing else', () => {
  const guard = createLinksGuard({ kind: 'links', hosts: ['example.com'], action: 'redact' });
  const moved = 'https://example.com\n.evil.test/';
  expect(judge(guard, { uri: moved, urls: [moved], text: moved })).toEqual({
    kind: 'change',
    value: { uri: '[link removed]', urls: ['[link removed]'], text: moved },
  });
});

const links = (action: 'redact' | 'refuse') =>
  createLinksGuard({ kind: 'links', hosts: ['example.com'], action });

test('§26.4 links leaves bytes as they are in which no address has a scheme', () => {
  for (const action of ['redact', 'refuse'] as const) {
    for (let count = 0; count < 200; count += 1) {
      const bytes = randomBytes(2_048);
      // Slashes among the bytes, and in what stands for them.
      bytes.write('//evil.test/', count);
      bytes.write('"//\u00fcser@\u0001', 300, 'latin1');
      bytes.fill(0xff, 100, 130);
      const value = { data: bytes.toString('base64'), blob: bytes.toString('base64') };
      expect(judge(links(action), value)).toEqual({ kind: 'pass' });
      const src = `data:image/png;base64,//${value.data}`;
      expect(judge(links(action), { src, text: `![x](${src})` })).toEqual({ kind: 'pass' });
    }
  }
});

test('§26.4 links finds an address with a scheme in any bytes', () => {
  const [before, behind] = [Buffer.from('\xff//', 'latin1'), Buffer.from(' \xfe', 'latin1')];
  for (const address of ['https://evil.test/p', 'https:evil.test', 'h%74tps://evil.test/']) {
    const bytes = Buffer.concat([before, Buffer.from(address), behind]);
    const decision = judge(links('refuse'), { blob: bytes.toString('base64') });
    expect(decision).toMatchObject({ kind: 'refuse' });
  }
});

test.each([
  ['<img src="//evil.test/p"> ü', '<img src="[link removed]"> ü'],
  ['\ufeffü ![x](https://evil.test/ü)', '\ufeffü ![x]([link removed])'],
  ['<img src="ht&#116;ps://evil.test/p">', '[link removed]'],
])('§26.4 links reads a text in base64 as any other: %s', (text, redacted) => {
  const encode = (words: string) => Buffer.from(words).toString('base64');
  const value = { mimeType: 'text/html', blob: encode(text) };
  expect(judge(links('redact'), value)).toEqual({
    kind: 'change',
    value: { mimeType: 'text/html', blob: encode(redacted) },
  });
});

test('§26.4 links reads a member called data that has no base64, too', () => {
  expect(judge(links('redact'), { data: 'see //evil.test/p' })).toEqual({
    kind: 'change',
    value: { data: 'see [link removed]' },
  });
});

test('§26.4 secrets looks at the bytes of what it has found a key in, too', () => {
  const data = `${Buffer.from(`in bytes: ${TOKEN} `).toString('base64')} ${SECRETS['aws-access-key']}`;
  const decision = judge(createSecretsGuard('redact'), { data });
  const [, base64 = ''] = /"data":"([^"]*)"/.exec(JSON.stringify(decision)) ?? [];
  expect(Buffer.from(base64, 'base64').toString('latin1')).not.toContain(TOKEN);
});

test('§26.4 megabytes of white space make no guard fail, which could let the rest pass', async () => {
  const blank = ' '.repeat(8_000_000);
  const secrets = createSecretsGuard('refuse');
  expect(await judge(secrets, { text: blank + TOKEN })).toMatchObject({ kind: 'refuse' });
  expect(await judge(links('refuse'), { text: `${blank}//evil.test` })).toMatchObject({
    kind: 'refuse',
  });
});

test('§26.4 links: an address is found however much white space is in it or before it', async () => {
  const far = 70_000;
  for (const text of [
    `<img src="${' '.repeat(far)}https://example.com\n.evil.test/p">`,
    `<img src="h${'\n'.repeat(far)}ttps://evil.test/p">`,
    // Of an attribute in an attribute, at the place where the outer one was cut before.
    `<iframe srcdoc="${'p'.repeat(4_085)}<img src='ht\ntps://evil.test/p'>">`,
  ]) {
    expect(await judge(links('refuse'), { text })).toMatchObject({ kind: 'refuse' });
  }
  const blank = `https://example.com${' '.repeat(far)}https://example.com`;
  expect(await judge(links('refuse'), { text: blank })).toEqual({ kind: 'pass' });
});

test('§26.4 many short texts with escapes hold nobody up', () => {
  const texts = Array<string>(2_000).fill('\\%41&');
  expect(judge(createSecretsGuard('redact'), texts)).toBeInstanceOf(Promise);
});

test('§26.4 few characters that take long hold nobody up', async () => {
  let now = 0;
  const looks: number[] = [];
  const guard = openGuard(secretsGuard, { kind: 'secrets', action: 'redact' }, () => {
    now += 1;
    return now;
  });
  const judging = judge(guard, { content: Array(100).fill('short') });
  expect(judging).toBeInstanceOf(Promise);
  const count = () => {
    looks.push(now);
    watching = setImmediate(count);
  };
  let watching = setImmediate(count);
  expect(await judging).toEqual({ kind: 'pass' });
  clearImmediate(watching);
  const turns = looks.map((at, index) => at - (looks[index - 1] ?? at));
  expect(Math.max(...turns)).toBeLessThan(10);
  expect(turns.length).toBeGreaterThan(10);
});

test('§26.4 links: a name of a user that is too long to be one hides no host', () => {
  const guard = createLinksGuard({ kind: 'links', hosts: ['example.com'], action: 'redact' });
  for (const length of [4_000, 5_000]) {
    const text = `https://example.com${'^'.repeat(length)}@evil.test/p`;
    expect(JSON.stringify(judge(guard, text))).not.toContain('evil.test');
  }
});

test('§26.4 links removes a link alone where it stands in the text itself', () => {
  const guard = createLinksGuard({ kind: 'links', hosts: ['example.com'], action: 'redact' });
  const text = '[a](https://evil.test/?a=1&amp;b=%41) and [b](https://example.com/?a&amp;b)';
  expect(judge(guard, { text })).toEqual({
    kind: 'change',
    value: { text: '[a]([link removed]) and [b](https://example.com/?a&amp;b)' },
  });
});

test('§26.4 links takes time that grows with the text alone', async () => {
  const hosts = ['example.com'];
  const guard = createLinksGuard({ kind: 'links', hosts, action: 'refuse' });
  for (const text of [
    'http:(',
    '"//',
    '/',
    '//',
    '//a',
    '//a@',
    'a@',
    'http:',
    'http:/',
    '//[',
    '&#47;',
    '&',
    'a:',
  ]) {
    const before = process.cpuUsage();
    await judge(guard, text.repeat(100_000));
    // The square would be minutes.
    expect(process.cpuUsage(before).user).toBeLessThan(10_000_000);
  }
});

test('§26.4 size counts bytes, and says what is allowed', () => {
  const guard = createSizeGuard(20);
  expect(judge(guard, { a: 'ü' })).toEqual({ kind: 'pass' });
  expect(judge(guard, { a: 'ü'.repeat(20) })).toMatchObject({ kind: 'refuse' });
  expect(judge(guard, [1, null, true, 'a', { b: 1.5 }, []])).toMatchObject({
    message: expect.stringContaining('has 30 bytes'),
  });
  expect(judge(guard, { a: 'x'.repeat(100) }, 'request')).toMatchObject({
    message: expect.stringContaining('The request has 108 bytes; at most 20 are allowed'),
  });
});

test('§26.4 size counts a long text as JSON has it', async () => {
  for (const text of ['x', '"\\', '\n', 'ü', '\u{1f600}', 'a\u{1f600}', '\ud800']) {
    const value = { text: text.repeat(200_000), n: new JsonNumber('1.0') };
    const bytes = Buffer.byteLength(JSON.stringify({ text: value.text, n: 100 }));
    expect(await judge(createSizeGuard(bytes), value)).toEqual({ kind: 'pass' });
    expect(await judge(createSizeGuard(bytes - 1), value)).toMatchObject({ kind: 'refuse' });
  }
});

const raw = useShared(() =>
  startRawServer((res, id) =>
    sendJson(res, {
      id,
      result: {
        content: [{ type: 'text', text: `The key: ${SECRETS['github-token']}` }],
        padding: 'x'.repeat(20_000),
      },
    }),
  ),
);

test('§26.4 a planted key does not reach the client, in a result that is long enough to go unread', async () => {
  const gateway = await startForTest({
    file: {
      mcpServers: { raw: raw.url },
      guards: [{ name: 'secrets', on: ['tools/result'], use: { builtIn: 'secrets' } }],
    },
  });
  const { json, text } = await callTool(gateway, 'raw__any');
  expect(json.result.content).toEqual([{ type: 'text', text: 'The key: [redacted:github-token]' }]);
  expect(text).not.toContain(SECRETS['github-token']);
  expect(json.result.padding).toHaveLength(20_000);
});
