// §26.4: the guards that come with the gateway.
import { expect, test } from 'vitest';
import { createLinksGuard } from '../../../src/policy/guards/built-in/links.ts';
import { createSecretsGuard } from '../../../src/policy/guards/built-in/secrets.ts';
import { createSizeGuard } from '../../../src/policy/guards/built-in/size.ts';
import type { AskGuard } from '../../../src/policy/guards/run-guard.ts';
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
  'telegram-token': `123456789:AA${letters(33)}`,
  'private-key': `-----BEGIN RSA PRIVATE KEY-----\nMIIE${letters(64)}\n-----END RSA PRIVATE KEY-----`,
  'json-web-token': `eyJ${letters(20)}.eyJ${letters(40)}.${letters(43)}`,
  password: 'postgres://admin:correct-horse@db.example.com/main',
  'bearer-token': `Authorization: Bearer ${letters(40)}`,
} as const;

/** What a guard that answers at once makes of a value. */
function judge(guard: AskGuard, value: unknown, phase: 'request' | 'response' = 'response') {
  const message = {
    guard: 'g',
    on: 'tools/result',
    method: 'tools/call',
    server: '',
    value,
  } as const;
  return guard({ ...message, phase }, { signal: undefined, owner: undefined });
}

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

test.each(HARMLESS)('§26.4 secrets leaves %s as it is', (text) => {
  const value = { content: [{ type: 'text', text }] };
  expect(judge(createSecretsGuard('redact'), value)).toEqual({ kind: 'pass' });
});

test('§26.4 secrets takes time that grows with the text alone', () => {
  const texts = ['-----BEGIN PRIVATE KEY-----', 'eyJa', 'a://b', 'aws key ', 'bearer ', 'ghp_'];
  const guard = createSecretsGuard('redact');
  for (const text of texts) {
    const measure = (times: number) => {
      const value = text.repeat(times);
      const startedAt = performance.now();
      judge(guard, value);
      return performance.now() - startedAt;
    };
    measure(100);
    // A hundred times of what a line takes; the square would be minutes.
    expect(measure(100_000)).toBeLessThan(5_000);
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

test('§26.4 size counts bytes, and says what is allowed', () => {
  const guard = createSizeGuard(20);
  expect(judge(guard, { a: 'ü' })).toEqual({ kind: 'pass' });
  expect(judge(guard, { a: 'ü'.repeat(20) })).toMatchObject({ kind: 'refuse' });
  expect(judge(guard, { a: 'x'.repeat(100) }, 'request')).toMatchObject({
    message: expect.stringContaining('The request has 108 bytes, and 20 are allowed'),
  });
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
