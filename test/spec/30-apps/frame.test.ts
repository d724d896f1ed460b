// §30.3: the frame of an app: what its policy is made of, and what it never says.
import { expect, test } from 'vitest';
import { startGateway } from '../../support/gateway/gateway.ts';
import { useShared } from '../../support/lifetimes.ts';

const gateway = useShared(() => startGateway());

/** The directives of the frame's policy, by name, for what an app declares. */
async function readPolicy(declared: readonly (readonly [string, string])[]) {
  const query = new URLSearchParams(
    declared.map(([kind, domain]): [string, string] => [kind, domain]),
  );
  const { status, headers } = await gateway.request({ path: `/playground/app?${query}` });
  expect(status).toBe(200);
  const policy = String(headers['content-security-policy']);
  return new Map(policy.split('; ').map((one) => [one.split(' ')[0], one.split(' ').slice(1)]));
}

test('§30.3 frame: without domains nothing is loaded from anywhere, and its origin is nobody’s', async () => {
  const policy = await readPolicy([]);
  expect(Object.fromEntries(policy)).toEqual({
    'default-src': ["'none'"],
    'script-src': ["'unsafe-inline'", "'wasm-unsafe-eval'", 'blob:'],
    'style-src': ["'unsafe-inline'"],
    'img-src': ['data:', 'blob:'],
    'font-src': ['data:'],
    'media-src': ['data:', 'blob:'],
    'connect-src': ["'none'"],
    'worker-src': ['blob:'],
    'frame-src': ["'none'"],
    'base-uri': ["'none'"],
    'object-src': ["'none'"],
    'form-action': ["'none'"],
    'frame-ancestors': ["'self'"],
    sandbox: ['allow-scripts', 'allow-forms'],
  });
  const { headers } = await gateway.request({ path: '/playground/app' });
  expect(headers['x-frame-options']).toBe('SAMEORIGIN');
  expect(headers['referrer-policy']).toBe('no-referrer');
});

test('§30.3 frame: each kind of domain is where ext-apps says, and nowhere else', async () => {
  const policy = await readPolicy([
    ['connect', 'https://api.example'],
    ['connect', 'wss://live.example:8443'],
    ['resource', 'https://*.cdn.example'],
    ['frame', 'https://video.example/embed/'],
    ['base', 'https://base.example'],
  ]);
  const where = (domain: string) =>
    [...policy].flatMap(([name, sources]) => (sources.includes(domain) ? [name] : []));
  expect(where('https://api.example')).toEqual(['connect-src']);
  expect(where('wss://live.example:8443')).toEqual(['connect-src']);
  expect(where('https://*.cdn.example')).toEqual([
    'script-src',
    'style-src',
    'img-src',
    'font-src',
    'media-src',
  ]);
  expect(where('https://video.example/embed/')).toEqual(['frame-src']);
  expect(where('https://base.example')).toEqual(['base-uri']);
});

test.each([
  '*',
  'https:',
  'https://*',
  "'self'",
  "'unsafe-eval'",
  'data:',
  'javascript://a.example',
  'https://a.example; script-src *',
  'https://a.example, default-src *',
  'https://a.example *',
  'https://a.example\r\nX-Evil: 1',
  'https://user@a.example',
  'https://a.*.example',
  'https://a.example/?q',
  `https://${'a'.repeat(255)}.example`,
  '',
])('§30.3 frame: %j is no origin, and is left out', async (domain) => {
  const kinds = ['connect', 'resource', 'frame', 'base'] as const;
  expect(await readPolicy(kinds.map((kind) => [kind, domain]))).toEqual(await readPolicy([]));
});

test('§30.3 frame: of each kind the first 40 count', async () => {
  const all = Array.from({ length: 60 }, (_, at) => ['connect', `https://a${at}.example`] as const);
  const policy = await readPolicy(all);
  expect(policy.get('connect-src')).toEqual(all.slice(0, 40).map(([, domain]) => domain));
});
