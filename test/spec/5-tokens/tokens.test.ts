import {
  constants,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
} from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { BASE_URL, INITIALIZE_REQUEST, type TestResponse } from '../../support/gateway/gateway.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { AUDIENCE } from '../../support/oauth/issuer.ts';

const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

const clock = manualClock(1_800_000_000_000);
/** A key of the provider that the tests hold themselves, to sign what no library would. */
const own = generateKeyPairSync('rsa', { modulusLength: 2048 });
const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 });
const OWN = { alg: 'RS256', kid: 'own' };

/** Every token that was sent, to look for in the log. */
const sent = new Set<string>();

const gateway = useGateway({ deps: { clock } });
beforeAll(async () => {
  const { issuer } = gateway;
  for (const alg of ALGORITHMS) await issuer.sign({}, { alg });
  const jwk = own.publicKey.export({ format: 'jwk' });
  issuer.keys = [
    ...issuer.keys,
    { ...jwk, kid: 'own' } as never,
    { ...jwk, kid: 'own-RS256', alg: 'RS256' } as never,
  ];
  await gateway.open();
  clock.advance(600_000);
  expect((await send(made())).status).toBe(200);
});

const base64url = (value: unknown): string =>
  (Buffer.isBuffer(value)
    ? value
    : Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
  ).toString('base64url');

const seconds = () => clock.now() / 1000;

const claims = (over: Readonly<Record<string, unknown>> = {}) => ({
  iss: gateway.issuer.url,
  aud: AUDIENCE,
  sub: 'user-1',
  exp: seconds() + 3600,
  ...over,
});

/** Header and payload as they stand, with a good signature over them. */
const signed = (header: string, payload: string, key: KeyObject = own.privateKey): string =>
  `${header}.${payload}.${base64url(signBytes('sha256', Buffer.from(`${header}.${payload}`), key))}`;

/** A token of the provider's own key: texts and bytes are taken as they are, the rest as JSON. */
const made = (header: unknown = OWN, payload: unknown = claims(), key?: KeyObject): string =>
  signed(base64url(header), base64url(payload), key);

async function send(token: string): Promise<TestResponse> {
  const answer = await gateway.rpc(INITIALIZE_REQUEST, { token });
  for (const part of secretParts(token)) expect(answer.text).not.toContain(part);
  sent.add(token);
  return answer;
}

const secretParts = (token: string): readonly string[] =>
  token.split('.').filter((part) => part.length >= 16);

/** Waits for a request that makes the gateway ask for the key set again. */
async function afterRefresh(answer: Promise<TestResponse>): Promise<TestResponse> {
  const { fetches } = gateway.issuer;
  const before = fetches.keys;
  await expect
    .poll(
      () => {
        clock.advance(2000);
        return fetches.keys;
      },
      { interval: 5, timeout: 10_000 },
    )
    .toBe(before + 1);
  return answer;
}

function expectRefused({ status, headers, json }: TestResponse, reason: string): void {
  expect(json).toEqual({
    jsonrpc: '2.0',
    error: {
      code: -32001,
      message: 'Unauthorized',
      data: { reason, details: expect.stringMatching(/./) },
    },
    id: null,
  });
  expect(status).toBe(401);
  expect(headers['www-authenticate']).toBe(
    `Bearer resource_metadata="${BASE_URL}/.well-known/oauth-protected-resource"`,
  );
  expect(headers['content-type']).toBe('application/json');
  expect(headers['mcp-session-id']).toBeUndefined();
}

/** Refused, and without a look at the provider: with the clock at rest it could not be answered. */
async function expectRefusedAtOnce(token: string, reason = 'invalid_token'): Promise<void> {
  const before = { ...gateway.issuer.fetches };
  expectRefused(await send(token), reason);
  expect(gateway.issuer.fetches).toEqual(before);
}

describe('why a token is refused', () => {
  test.each([
    { reason: 'invalid_issuer', over: { iss: 'https://other.example' } },
    { reason: 'invalid_audience', over: { aud: 'https://other.example' } },
    { reason: 'expired_token', over: { exp: 1_700_000_000 } },
    { reason: 'missing_claim', over: { sub: undefined } },
  ])('§7.1 $reason: 401, -32001 Unauthorized and the challenge', async ({ reason, over }) => {
    expectRefused(await send(await gateway.issuer.sign(over)), reason);
  });

  test('§7.1 no Authorization header: missing_token, on POST and DELETE', async () => {
    const post = { method: 'POST', path: '/mcp', body: INITIALIZE_REQUEST };
    expectRefused(await gateway.request(post), 'missing_token');
    expectRefused(await gateway.request({ method: 'DELETE', path: '/mcp' }), 'missing_token');
  });

  test('§5 a token in the query or the body does not count: missing_token', async () => {
    const token = made();
    const path = `/mcp?access_token=${token}`;
    expectRefused(
      await gateway.request({ method: 'POST', path, body: INITIALIZE_REQUEST }),
      'missing_token',
    );
    const body = { ...INITIALIZE_REQUEST, access_token: token };
    expectRefused(await gateway.request({ method: 'POST', path: '/mcp', body }), 'missing_token');
    sent.add(token);
  });

  test.each([
    '',
    ' ',
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Bearer a, Bearer b',
    'Bearer a,b',
    'Bearer\ta',
    'Bearera',
    'Basic x',
    'Basic dXNlcjpwYXNz',
    'DPoP a.b.c',
    'Token a.b.c',
    'a.b.c',
    'Bearer=a.b.c',
    'Bearer:a.b.c',
    'xBearer a.b.c',
  ])('§7.1 Authorization "%s": invalid_format', async (authorization) => {
    const headers = { authorization };
    const post = { method: 'POST', path: '/mcp', body: INITIALIZE_REQUEST, headers };
    expectRefused(await gateway.request(post), 'invalid_format');
  });

  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer  '])(
    '§5 the scheme "%s" is taken',
    async (scheme) => {
      const headers = { authorization: `${scheme} ${made()}` };
      const answer = await gateway.rpc(INITIALIZE_REQUEST, { headers });
      expect(answer.status).toBe(200);
    },
  );

  test.each(['a', 'a.b', 'null', 'undefined', '[objectObject]', '..', '...'])(
    '§7.1 "Bearer %s": invalid_token',
    async (token) => expectRefusedAtOnce(token),
  );

  test('§7.1 DELETE with a bad token: invalid_token, and the session lives on', async () => {
    const session = await gateway.open({ token: made() });
    const headers = { authorization: 'Bearer a.b.c', 'mcp-session-id': session };
    expectRefused(
      await gateway.request({ method: 'DELETE', path: '/mcp', headers }),
      'invalid_token',
    );
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    expect((await gateway.rpc(ping, { session, token: made() })).json.result).toEqual({});
  });
});

describe('the signature of a token', () => {
  test.each(ALGORITHMS)('§5 a token signed with %s is accepted', async (alg) => {
    const before = gateway.issuer.fetches.keys;
    expect((await send(await gateway.issuer.sign({}, { alg }))).status).toBe(200);
    expect(gateway.issuer.fetches.keys).toBe(before);
  });

  test.each(ALGORITHMS)('§5 a %s token without kid is tried on every fitting key', async (alg) => {
    const before = gateway.issuer.fetches.keys;
    expect((await send(await gateway.issuer.sign({}, { alg, kid: null }))).status).toBe(200);
    expect((await send(made({ alg: 'RS256' }))).status).toBe(200);
    expect(gateway.issuer.fetches.keys).toBe(before);
  });

  test.each(ALGORITHMS)('§7.1 a tampered %s token: invalid_token', async (alg) => {
    const token = await gateway.issuer.sign({}, { alg });
    const [header = '', payload = '', signature = ''] = token.split('.');
    const bytes = Buffer.from(signature, 'base64url');
    const flipped = (at: number) => bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));
    const signatures = [
      flipped(0),
      flipped(bytes.length >> 1),
      flipped(bytes.length - 1),
      Buffer.alloc(0),
      Buffer.alloc(bytes.length),
      Buffer.alloc(bytes.length, 0xff),
      Buffer.alloc(bytes.length, Buffer.from([0, 1])),
      bytes.subarray(0, -1),
      bytes.subarray(1),
      Buffer.concat([bytes, Buffer.alloc(1)]),
      Buffer.concat([Buffer.alloc(1), bytes]),
      Buffer.from(bytes).reverse(),
    ];
    for (const forged of signatures) {
      await expectRefusedAtOnce(`${header}.${payload}.${base64url(Buffer.from(forged))}`);
    }
    const other = base64url(claims({ sub: 'admin' }));
    await expectRefusedAtOnce(`${header}.${other}.${signature}`);
    const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString());
    await expectRefusedAtOnce(`${base64url({ kid, alg })}.${payload}.${signature}`);
  });

  test.each(['ES256', 'ES384', 'ES512'])(
    '§7.1 an %s signature in DER instead of r and s: invalid_token',
    async (alg) => {
      const curve = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }[alg] ?? '';
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: curve });
      const kid = `der-${alg}`;
      gateway.issuer.keys = [
        ...gateway.issuer.keys,
        { ...publicKey.export({ format: 'jwk' }), kid } as never,
      ];
      const text = `${base64url({ alg, kid })}.${base64url(claims())}`;
      const signature = (dsaEncoding: 'der' | 'ieee-p1363') =>
        base64url(
          signBytes(`sha${alg === 'ES512' ? 512 : alg.slice(2)}`, Buffer.from(text), {
            key: privateKey,
            dsaEncoding,
          }),
        );
      const right = await afterRefresh(send(`${text}.${signature('ieee-p1363')}`));
      expect(right.status).toBe(200);
      await expectRefusedAtOnce(`${text}.${signature('der')}`);
    },
  );

  test('§7.1 an RSA signature without its leading zero: invalid_token', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const kid = 'leading-zero';
    gateway.issuer.keys = [
      ...gateway.issuer.keys,
      { ...publicKey.export({ format: 'jwk' }), kid } as never,
    ];
    const text = `${base64url({ alg: 'PS256', kid })}.${base64url(claims())}`;
    const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
    const create = () => signBytes('sha256', Buffer.from(text), { key: privateKey, ...padding });
    // The salt makes each another one: one in 256 begins with a zero.
    let signature = create();
    while (signature[0] !== 0) signature = create();
    expectRefused(
      await afterRefresh(send(`${text}.${base64url(signature.subarray(1))}`)),
      'invalid_token',
    );
    expect((await send(`${text}.${base64url(signature)}`)).status).toBe(200);
  });

  test('§7.1 a foreign key under a known kid: invalid_token, and nothing is fetched', async () => {
    await expectRefusedAtOnce(made(OWN, claims(), foreign.privateKey));
    await expectRefusedAtOnce(made({ alg: 'RS256', kid: 'RS256-1' }, claims(), foreign.privateKey));
  });

  test('§7.1 a foreign key without kid, or under an unknown one: invalid_token', async () => {
    const unnamed = made({ alg: 'RS256' }, claims(), foreign.privateKey);
    expectRefused(await afterRefresh(send(unnamed)), 'invalid_token');
    const unknown = made({ alg: 'RS256', kid: 'nobody' }, claims(), foreign.privateKey);
    expectRefused(await afterRefresh(send(unknown)), 'invalid_token');
  });

  test('§7.1 the signature is checked before the claims', async () => {
    const bad = claims({ exp: 1, iss: 'x', aud: 'y', sub: '' });
    await expectRefusedAtOnce(made(OWN, bad, foreign.privateKey));
    await expectRefusedAtOnce(made(OWN, 'no JSON', foreign.privateKey));
  });

  test.each([
    { alg: 'PS256', kid: 'own', why: 'its signature is of RS256' },
    { alg: 'RS384', kid: 'own', why: 'its signature is of RS256' },
  ])('§7.1 alg $alg under $kid: invalid_token, for $why', async ({ alg, kid }) => {
    await expectRefusedAtOnce(made({ alg, kid }));
  });

  test.each([
    { alg: 'RS384', kid: 'own-RS256' },
    { alg: 'PS256', kid: 'own-RS256' },
    { alg: 'RS256', kid: 'ES256-7' },
    { alg: 'ES256', kid: 'own' },
    { alg: 'EdDSA', kid: 'own' },
    { alg: 'ES256', kid: 'ES384-8' },
  ])('§7.1 alg $alg with the key $kid, which is for another: invalid_token', async (header) => {
    expect(gateway.issuer.keys.map(({ kid }) => kid)).toContain(header.kid);
    const hash = `sha${header.alg.slice(2)}`.replace('shaDSA', 'sha512');
    const text = `${base64url(header)}.${base64url(claims())}`;
    const token = `${text}.${base64url(signBytes(hash, Buffer.from(text), own.privateKey))}`;
    expectRefused(await afterRefresh(send(token)), 'invalid_token');
  });
});

describe('attacks on the header', () => {
  test.each(
    [
      'none',
      'None',
      'NONE',
      'nOnE',
      ' none',
      'none ',
      'none\u0000',
      'ｎｏｎｅ',
      '',
      'rs256',
      'RS256 ',
      'RS256\u0000',
      'RS1',
      'RS224',
      'ES256K',
      'ES224',
      'Ed25519',
      'RSA1_5',
      'RSA-OAEP',
      'A256GCM',
      'dir',
      'HS256',
      'HS384',
      'HS512',
      '__proto__',
      'constructor',
      'toString',
      'size',
      null,
      undefined,
      0,
      true,
      ['RS256'],
      [],
      {},
      { toString: 'RS256' },
    ].map((alg) => ({ alg })),
  )('§7.1 alg $alg: invalid_token, without a look at any key', async ({ alg }) => {
    for (const kid of ['own', 'nobody', undefined]) {
      const [header, payload, signature] = made({ alg, kid }).split('.');
      await expectRefusedAtOnce(`${header}.${payload}.`);
      await expectRefusedAtOnce(`${header}.${payload}.${signature}`);
    }
  });

  test.each(['HS256', 'HS384', 'HS512'])(
    '§7.1 %s keyed with the public key in every spelling: invalid_token',
    async (alg) => {
      const key = createPublicKey(own.publicKey.export({ format: 'pem', type: 'spki' }));
      const jwk = key.export({ format: 'jwk' });
      const secrets = [
        key.export({ format: 'pem', type: 'spki' }),
        String(key.export({ format: 'pem', type: 'spki' })).trimEnd(),
        key.export({ format: 'pem', type: 'pkcs1' }),
        key.export({ format: 'der', type: 'spki' }),
        key.export({ format: 'der', type: 'pkcs1' }),
        JSON.stringify(jwk),
        Buffer.from(jwk.n ?? '', 'base64url'),
        '',
      ];
      for (const secret of secrets) {
        const text = `${base64url({ ...OWN, alg })}.${base64url(claims())}`;
        const mac = createHmac(`sha${alg.slice(2)}`, secret)
          .update(text)
          .digest();
        await expectRefusedAtOnce(`${text}.${base64url(mac)}`);
      }
    },
  );

  const keyOfTheAttacker = () => {
    const { url } = gateway.issuer;
    return {
      jku: `${url}/attacker/jwks`,
      x5u: `${url}/attacker/chain.pem`,
      jwk: foreign.publicKey.export({ format: 'jwk' }),
      x5c: [base64url(foreign.publicKey.export({ format: 'der', type: 'spki' }))],
    };
  };

  test('§7.1 jku, x5u, jwk and x5c bring no key in: invalid_token, and nothing is fetched', async () => {
    for (const [name, value] of Object.entries(keyOfTheAttacker())) {
      const header = { ...OWN, [name]: value };
      await expectRefusedAtOnce(made(header, claims(), foreign.privateKey));
    }
    const all = { ...keyOfTheAttacker(), alg: 'RS256', kid: 'attacker' };
    const unknown = await afterRefresh(send(made(all, claims(), foreign.privateKey)));
    expectRefused(unknown, 'invalid_token');
    expect(gateway.issuer.fetches.elsewhere).toBe(0);
  });

  test('§5 jku, x5u, jwk and x5c of a well signed token are not looked at', async () => {
    expect((await send(made({ ...OWN, ...keyOfTheAttacker() }))).status).toBe(200);
    const nonsense = { jku: 5, x5u: {}, jwk: 'x', x5c: null, 'x5t#S256': [], cty: 'x' };
    expect((await send(made({ ...OWN, ...nonsense }))).status).toBe(200);
    expect(gateway.issuer.fetches.elsewhere).toBe(0);
  });

  test.each([
    { crit: ['exp'], exp: 1 },
    { crit: ['b64'], b64: true },
    { crit: ['b64'], b64: false },
    { crit: ['alg'] },
    { crit: ['x'] },
    { crit: [] },
    { crit: null },
    { crit: false },
    { crit: 'b64' },
    { crit: {} },
  ])('§7.1 the well signed header %j: invalid_token', async (extension) => {
    await expectRefusedAtOnce(made({ ...OWN, ...extension }));
  });

  test('§7.1 b64:false with a payload that is not encoded: invalid_token', async () => {
    const header = base64url({ ...OWN, b64: false, crit: ['b64'] });
    await expectRefusedAtOnce(signed(header, '{"sub":"x"}'));
    const without = base64url({ ...OWN, b64: false });
    await expectRefusedAtOnce(signed(without, '{"sub":"x"}'));
  });

  test.each([
    { what: 'nothing', header: '' },
    { what: 'null', header: 'null' },
    { what: 'an array', header: '[{"alg":"RS256","kid":"own"}]' },
    { what: 'a number', header: '5' },
    { what: 'a string', header: '"RS256"' },
    { what: 'broken JSON', header: '{"alg":"RS256","kid":"own"' },
    { what: 'JSON and more', header: '{"alg":"RS256","kid":"own"}{}' },
    { what: 'JSON after a byte order mark', header: '\uFEFF{"alg":"RS256","kid":"own"}' },
    { what: 'single quotes', header: "{'alg':'RS256','kid':'own'}" },
    { what: 'alg of a prototype', header: '{"__proto__":{"alg":"RS256"},"kid":"own"}' },
    { what: 'a kid that is a number', header: '{"alg":"RS256","kid":5}' },
    { what: 'a kid that is null', header: '{"alg":"RS256","kid":null}' },
    { what: 'a kid that is an array', header: '{"alg":"RS256","kid":["own"]}' },
    { what: '1,000 nested arrays', header: `${'['.repeat(1000)}${']'.repeat(1000)}` },
    { what: 'bytes that are no UTF-8', header: Buffer.from('7b22616c67223a22ff227d', 'hex') },
    { what: 'UTF-16', header: Buffer.from('{"alg":"RS256","kid":"own"}', 'utf16le') },
  ])('§7.1 a header that is $what, well signed: invalid_token', async ({ header }) => {
    await expectRefusedAtOnce(made(header));
  });

  test.each(['__proto__', 'constructor', '../../etc/passwd', "' OR 1=1 --", 'x'.repeat(4000)])(
    '§7.1 the unknown kid %s: invalid_token',
    async (kid) => {
      const token = made({ alg: 'RS256', kid }, claims(), foreign.privateKey);
      expectRefused(await afterRefresh(send(token)), 'invalid_token');
    },
  );
});

describe('the form of a token', () => {
  test('§7.1 a token that has not exactly three parts: invalid_token', async () => {
    const token = made();
    const [header = '', payload = '', signature = ''] = token.split('.');
    const forms = [
      header,
      `${header}.${payload}`,
      `${header}.${signature}`,
      `${header}..${signature}`,
      `.${payload}.${signature}`,
      `.${token}`,
      `${token}.`,
      `${token}.${signature}`,
      `${token}..`,
      `${header}.${payload}.${payload}.${payload}.${signature}`,
      `${token}.${token}`,
      `${header}.${payload}:${signature}`,
      `${header}%2E${payload}%2E${signature}`,
    ];
    for (const form of forms) await expectRefusedAtOnce(form);
  });

  test('§7.1 an encrypted token (five parts, JWE header): invalid_token', async () => {
    const header = base64url({ alg: 'RSA-OAEP', enc: 'A256GCM', kid: 'own' });
    await expectRefusedAtOnce(`${header}.AAAA.AAAA.AAAA.AAAA`);
  });

  test('§7.1 every part must be canonical base64url, however well signed', async () => {
    const header = base64url({ ...OWN, pad: 'x' });
    const payload = base64url(claims());
    expect((await send(signed(header, payload))).status).toBe(200);
    const spoilt = (part: string) => [
      `${part}=`,
      `${part}==`,
      `=${part}`,
      part + 'A'.repeat((5 - (part.length % 4)) % 4),
      `${part}!`,
      `${part}?`,
      `${part}+`,
      `${part}/`,
      `${part}%`,
      `${part}\u00e9`,
      `${part.slice(0, 5)}*${part.slice(5)}`,
      `${part.slice(0, 5)}=${part.slice(5)}`,
    ];
    for (const bad of spoilt(header).filter(isNotCanonical)) {
      await expectRefusedAtOnce(signed(bad, payload));
    }
    for (const bad of spoilt(payload).filter(isNotCanonical)) {
      await expectRefusedAtOnce(signed(header, bad));
    }
    const [, , signature = ''] = signed(header, payload).split('.');
    for (const bad of spoilt(signature).filter(isNotCanonical)) {
      await expectRefusedAtOnce(`${header}.${payload}.${bad}`);
    }
  });

  test('§7.1 base64 with + and / in place of - and _: invalid_token', async () => {
    // U+00FE and U+00BF give both characters, whatever stands before them.
    const name = '\u00fe\u00bf~~?>'.repeat(4);
    const payload = base64url(claims({ name }));
    const plain = payload.replaceAll('-', '+').replaceAll('_', '/');
    expect(plain).not.toBe(payload);
    expect((await send(signed(base64url(OWN), payload))).status).toBe(200);
    await expectRefusedAtOnce(signed(base64url(OWN), plain));
  });

  test('§7.1 stray bits in the last character: invalid_token, though the bytes are the same', async () => {
    const token = made();
    for (const last of sameBytes(token)) await expectRefusedAtOnce(token.slice(0, -1) + last);
    // As many bytes as leave bits over.
    const header = base64url(JSON.stringify(OWN).padEnd(31));
    expect((await send(signed(header, base64url(claims())))).status).toBe(200);
    for (const last of sameBytes(header)) {
      await expectRefusedAtOnce(signed(header.slice(0, -1) + last, base64url(claims())));
    }
  });

  test.each([' ', '\t', '\u00a0'])('§7.1 white space (%j) within a token: 401', async (space) => {
    const token = made();
    for (const at of [5, token.indexOf('.'), token.lastIndexOf('.') + 1, token.length - 3]) {
      const spoilt = `${token.slice(0, at)}${space}${token.slice(at)}`;
      await expectRefusedAtOnce(spoilt, 'invalid_format');
    }
  });

  test('§5 a token of 16 KiB is accepted, one byte more: invalid_token', async () => {
    expect((await send(ofLength(16_383))).status).toBe(200);
    expect((await send(ofLength(16_384))).status).toBe(200);
    await expectRefusedAtOnce(ofLength(16_385));
    await expectRefusedAtOnce(made(OWN, claims({ name: 'x'.repeat(100_000) })));
    await expectRefusedAtOnce('.'.repeat(100_000));
  });

  const isNotCanonical = (part: string) =>
    Buffer.from(part, 'base64url').toString('base64url') !== part;

  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

  /** Other last characters that a lax decoder reads as the same bytes. */
  function sameBytes(text: string): readonly string[] {
    const part = text.slice(text.lastIndexOf('.') + 1);
    const bytes = Buffer.from(part, 'base64url');
    const others = [...ALPHABET].filter(
      (last) =>
        last !== part.at(-1) && bytes.equals(Buffer.from(part.slice(0, -1) + last, 'base64url')),
    );
    expect(others).not.toEqual([]);
    return others;
  }

  /** A good token of exactly so many bytes. */
  function ofLength(length: number): string {
    for (let more = 0; more < 4; more += 1) {
      const header = { ...OWN, x: 'x'.repeat(more) };
      const missing = length - made(header, claims({ name: '' })).length;
      for (let fill = Math.floor((missing * 3) / 4) - 3; fill <= missing; fill += 1) {
        const token = made(header, claims({ name: 'x'.repeat(fill) }));
        if (token.length === length) return token;
        if (token.length > length) break;
      }
    }
    throw new Error(`no token of ${length} bytes`);
  }
});

describe('the claims of a token', () => {
  const raw = (member: string) => {
    const { exp: _, ...others } = claims();
    return JSON.stringify(others).replace('{', `{${member},`);
  };

  test.each([
    '"exp":"1900000000"',
    '"exp":1e999',
    '"exp":-1e999',
    '"exp":null',
    '"exp":true',
    '"exp":[1900000000]',
    '"exp":{}',
    '"nbf":1',
    '"__proto__":{"exp":1900000000}',
  ])('§7.1 a token with %s in place of an exp: invalid_token', async (member) => {
    await expectRefusedAtOnce(made(OWN, raw(member)));
  });

  test.each([0, -1, 1e-300, -1e300, 1_799_999_990])('§7.1 exp %d: expired_token', async (exp) => {
    await expectRefusedAtOnce(made(OWN, claims({ exp })), 'expired_token');
  });

  test.each([1e300, 9_007_199_254_740_991, 4_102_444_800.75])(
    '§5 exp %d is accepted',
    async (exp) => {
      expect((await send(made(OWN, claims({ exp })))).status).toBe(200);
    },
  );

  test.each([4_102_444_800, 1e300, '0', '', null, true, [0], {}].map((nbf) => ({ nbf })))(
    '§7.1 nbf $nbf: invalid_token',
    async ({ nbf }) => {
      await expectRefusedAtOnce(made(OWN, claims({ nbf })));
    },
  );

  test('§7.1 nbf 1e999: invalid_token', async () => {
    const payload = JSON.stringify(claims({ nbf: 0 })).replace('"nbf":0', '"nbf":1e999');
    await expectRefusedAtOnce(made(OWN, payload));
  });

  test.each([0, -5, 1_700_000_000.5])('§5 nbf %d is accepted', async (nbf) => {
    expect((await send(made(OWN, claims({ nbf })))).status).toBe(200);
  });

  test.each([undefined, null, '', 5, {}, 'https://other.example'].map((iss) => ({ iss })))(
    '§7.1 iss $iss: invalid_issuer',
    async ({ iss }) => {
      await expectRefusedAtOnce(made(OWN, claims({ iss })), 'invalid_issuer');
    },
  );

  test('§7.1 an iss that only resembles OIDC_ISSUER: invalid_issuer', async () => {
    const { url } = gateway.issuer;
    const likes = [`${url}/`, url.toUpperCase(), ` ${url}`, `${url}\u0000`, [url], `${url}.x`];
    for (const iss of likes) {
      await expectRefusedAtOnce(made(OWN, claims({ iss })), 'invalid_issuer');
    }
  });

  test.each(
    [
      undefined,
      null,
      '',
      5,
      true,
      {},
      { 0: AUDIENCE, length: 1 },
      { [AUDIENCE]: true },
      [],
      [[AUDIENCE]],
      [null, 5, {}],
      ['https://other.example'],
      `${AUDIENCE}/`,
      AUDIENCE.toUpperCase(),
      ` ${AUDIENCE}`,
      `${AUDIENCE} https://other.example`,
      `${AUDIENCE},${AUDIENCE}`,
      `${BASE_URL}.evil.example`,
      'mcp',
    ].map((aud) => ({ aud })),
  )('§7.1 aud $aud: invalid_audience', async ({ aud }) => {
    await expectRefusedAtOnce(made(OWN, claims({ aud })), 'invalid_audience');
    const line = gateway.log.findLast(({ error }) => error === 'invalid_audience');
    expect(line?.expected).toContain(gateway.baseUrl);
    expect(line?.found).toEqual(aud);
  });

  test.each(
    [
      BASE_URL,
      `${BASE_URL}/`,
      AUDIENCE,
      [AUDIENCE],
      ['https://other.example', AUDIENCE],
      [5, null, {}, BASE_URL],
    ].map((aud) => ({ aud })),
  )('§5 aud $aud is accepted without OIDC_AUDIENCE', async ({ aud }) => {
    expect((await send(made(OWN, claims({ aud })))).status).toBe(200);
  });

  test.each(
    [undefined, null, '', 0, 5, true, [], ['user-1'], {}, 'a\ud800', '\udc00a'].map((sub) => ({
      sub,
    })),
  )('§7.1 sub $sub: missing_claim', async ({ sub }) => {
    await expectRefusedAtOnce(made(OWN, claims({ sub })), 'missing_claim');
  });

  // Servers with `identity` take this name for the gateway itself (§18.6).
  test.each(['', '/', '//'])(
    '§5 a user is not called as the gateway is, with %j at the end: invalid_token',
    async (end) => {
      for (const name of [BASE_URL, BASE_URL.toUpperCase()]) {
        await expectRefusedAtOnce(made(OWN, claims({ sub: `${name}${end}` })), 'invalid_token');
      }
      for (const sub of [`${BASE_URL}/users/1`, `${BASE_URL}0`, `x${BASE_URL}`]) {
        expect((await send(made(OWN, claims({ sub })))).status).toBe(200);
      }
    },
  );

  test('§7.1 a sub of the prototype is none: missing_claim', async () => {
    const payload = JSON.stringify(claims({ sub: undefined })).replace(
      '{',
      '{"__proto__":{"sub":"admin"},',
    );
    await expectRefusedAtOnce(made(OWN, payload), 'missing_claim');
  });

  test.each([
    { what: 'nothing', payload: '' },
    { what: 'null', payload: 'null' },
    { what: 'a string', payload: '"x"' },
    { what: 'a number', payload: '5' },
    { what: 'an array', payload: '[{"sub":"x"}]' },
    { what: 'broken JSON', payload: '{"sub":"x"' },
    { what: 'bytes that are no UTF-8', payload: Buffer.from('7b22737562223a22ff227d', 'hex') },
    { what: '2,000 nested arrays', payload: `${'['.repeat(2000)}${']'.repeat(2000)}` },
  ])('§7.1 a payload that is $what, well signed: invalid_token', async ({ payload }) => {
    await expectRefusedAtOnce(made(OWN, payload));
  });

  const profile = async (token: string) => {
    const session = await gateway.open({ token });
    const read = {
      jsonrpc: '2.0',
      id: 1,
      method: 'resources/read',
      params: { uri: 'user://profile' },
    };
    const { json } = await gateway.rpc(read, { session, token });
    return JSON.parse(json.result.contents[0].text);
  };

  test('§5 email, name and groups are copied into the user context', async () => {
    const told = { email: 'a@example.org', name: 'A \u{1d11e} "B"', groups: ['x', 'y'] };
    expect(await profile(made(OWN, claims(told)))).toMatchObject({ sub: 'user-1', ...told });
  });

  test('§2.3 optional claims of a wrong type are left out, not a reason to refuse', async () => {
    const wrong = [
      { email: 5, name: {}, groups: 'admin' },
      { email: null, name: null, groups: null },
      { email: ['a'], name: true, groups: ['admin', 5] },
      { email: {}, name: [], groups: { 0: 'admin' } },
    ];
    for (const told of wrong) {
      const user = await profile(made(OWN, claims(told)));
      expect(user.sub).toBe('user-1');
      expect(JSON.stringify(user)).not.toContain('admin');
      expect(user.email ?? user.name).not.toBeTypeOf('number');
    }
  });
});

describe('the times of a token', () => {
  test('§5 exp has a tolerance of 5 seconds', async () => {
    const accepted = made(OWN, claims({ exp: seconds() - 4.999 }));
    expect((await send(accepted)).status).toBe(200);
    await expectRefusedAtOnce(made(OWN, claims({ exp: seconds() - 5 })), 'expired_token');
  });

  test('§5 nbf has a tolerance of 5 seconds', async () => {
    expect((await send(made(OWN, claims({ nbf: seconds() + 5 })))).status).toBe(200);
    await expectRefusedAtOnce(made(OWN, claims({ nbf: seconds() + 5.001 })));
  });

  test('§5 a token is checked on every request: it expires within its session', async () => {
    const token = made(OWN, claims({ exp: seconds() + 10 }));
    const session = await gateway.open({ token });
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    clock.advance(14_999);
    expect((await gateway.rpc(ping, { session, token })).status).toBe(200);
    clock.advance(1);
    expectRefused(await gateway.rpc(ping, { session, token }), 'expired_token');
    expect((await gateway.rpc(ping, { session, token: made() })).status).toBe(200);
  });
});

describe('settings of the token check', () => {
  const other = useGateway({
    env: {
      BASE_URL: 'https://mcp.example/base',
      OIDC_AUDIENCE: 'one, two',
      OIDC_CLOCK_TOLERANCE_SECONDS: '0',
    },
    deps: { clock },
  });

  const reasonFor = async (over: Readonly<Record<string, unknown>>) => {
    const { status, json } = await other.rpc(INITIALIZE_REQUEST, {
      token: await other.issuer.sign(over),
    });
    return status === 200 ? undefined : json.error.data.reason;
  };

  test('§5 OIDC_AUDIENCE replaces the audiences of BASE_URL; any one of its list matches', async () => {
    for (const aud of ['one', 'two', ['x', 'two']])
      expect(await reasonFor({ aud })).toBeUndefined();
    for (const aud of [
      'one, two',
      'On',
      'https://mcp.example/base',
      'https://mcp.example/base/mcp',
    ]) {
      expect(await reasonFor({ aud })).toBe('invalid_audience');
    }
  });

  test('§5 OIDC_CLOCK_TOLERANCE_SECONDS=0 leaves no tolerance', async () => {
    const now = clock.now() / 1000;
    expect(await reasonFor({ aud: 'one', exp: now + 1 })).toBeUndefined();
    expect(await reasonFor({ aud: 'one', exp: now })).toBe('expired_token');
    expect(await reasonFor({ aud: 'one', nbf: now })).toBeUndefined();
    expect(await reasonFor({ aud: 'one', nbf: now + 1 })).toBe('invalid_token');
  });

  test('§7.1 the challenge names the BASE_URL, whatever the Host says', async () => {
    const { headers } = await other.request({
      method: 'POST',
      path: '/mcp',
      body: INITIALIZE_REQUEST,
    });
    expect(headers['www-authenticate']).toBe(
      'Bearer resource_metadata="https://mcp.example/base/.well-known/oauth-protected-resource"',
    );
  });
});

describe('tokens and secrets are not repeated', () => {
  test('§5 no token, nor a part of one, is ever in the log', () => {
    const log = JSON.stringify(gateway.log);
    expect(sent.size).toBeGreaterThan(300);
    const parts = new Set([...sent].flatMap(secretParts));
    expect([...parts].filter((part) => log.includes(part))).toEqual([]);
  });

  test('§7.1 no attack made the service fail: no error in the log, nothing fetched elsewhere', () => {
    expect(gateway.log.filter(({ level }) => level === 'error')).toEqual([]);
    expect(gateway.issuer.fetches.elsewhere).toBe(0);
  });
});
