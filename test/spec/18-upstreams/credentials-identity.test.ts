import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import { GATEWAY_CALLER, type UpstreamCaller } from '../../../src/mcp/upstream/upstream.ts';
import { addToken } from '../../../src/servers/credentials/credential-type.ts';
import {
  createGetIdentity,
  createIdentityIssuer,
} from '../../../src/servers/credentials/identity.ts';
import { buildIdentityKeyName } from '../../../src/store/keys.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { createSigningKeys } from '../../../src/store/seal/signing-keys.ts';
import type { Store } from '../../../src/store/store.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { useFresh, useShared } from '../../support/lifetimes.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';
import { callerOf } from '../../support/upstreams/callers.ts';

const BASE = 'https://gw.example';
const URL_OF_SERVER = 'https://wiki.example/mcp';
const DAY_MS = 86_400_000;
const SECRET = 'a secret of the tests that is long enough';
const OTHER_SECRET = 'another secret that is long enough, too';

const issuer = useShared(startIssuer);

const shared = useFresh(async () => {
  const clock: ManualClock = manualClock(1_800_000_000_000);
  let isDown = false;
  const wrapped = await wrapStore((real) => {
    const unlessDown =
      <Args extends readonly unknown[], Result>(step: (...args: Args) => Promise<Result>) =>
      async (...args: Args) => {
        if (isDown) throw new Error('The store is down');
        return step(...args);
      };
    return {
      get: unlessDown(real.get),
      set: unlessDown(real.set),
      getOrSet: unlessDown(real.getOrSet),
    };
  }, clock);
  return {
    clock,
    store: wrapped.store,
    breakStore: (value: boolean) => {
      isDown = value;
    },
    async close() {
      await wrapped.store.close();
      await wrapped.remove();
    },
  };
});

/** One of the gateways that share a store. */
function startReplica(
  secrets: readonly string[] = [SECRET],
  store: Store = shared.store,
  providerIssuer?: string,
) {
  const { log, lines } = collectLog();
  const { clock } = shared;
  const seal = createSeal(secrets);
  const keys = createSigningKeys({ store, clock, log }, async () => seal, buildIdentityKeyName);
  const identity = createIdentityIssuer(clock, keys, BASE, providerIssuer);
  const getHeaders = addToken(createGetIdentity(identity, URL_OF_SERVER), {});
  return {
    identity,
    lines,
    getHeaders,
    async getToken(caller: UpstreamCaller) {
      return (await getHeaders(caller)).authorization?.replace('Bearer ', '') ?? '';
    },
    /** As a server does it that fetches the key set now. */
    async verify(token: string) {
      const keySet = JSON.parse(JSON.stringify(await identity.getKeySet()));
      return jwtVerify(token, createLocalJWKSet(keySet), {
        issuer: BASE,
        audience: URL_OF_SERVER,
        currentDate: new Date(clock.now()),
      });
    },
    async kids() {
      const keySet = JSON.parse(JSON.stringify(await identity.getKeySet()));
      return keySet.keys.map(({ kid }: { kid: string }) => kid).sort();
    },
  };
}

const signIn = (claims: Readonly<Record<string, unknown>> = {}) =>
  issuer.sign({ exp: 2_000_000_000, ...claims });

describe('the token', () => {
  test('§18.6 identity: says who calls, by which client, for whom, and for how long', async () => {
    const replica = startReplica();
    const claims = { sub: 'ada', email: 'ada@example.com', groups: ['engineering', 'all'] };
    const token = await replica.getToken(callerOf(await signIn(claims), 'svc-editor'));
    const { payload, protectedHeader } = await replica.verify(token);
    const iat = shared.clock.now() / 1000;
    expect(payload).toEqual({
      iss: BASE,
      aud: URL_OF_SERVER,
      ...claims,
      client: 'svc-editor',
      iat,
      exp: iat + 60,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'JWT', kid: expect.any(String) });
  });

  test.each([
    ['nothing', {}, {}],
    ['that it is verified', { email_verified: 'true' }, { email_verified: true }],
    ['that it is not', { email_verified: false }, { email_verified: false }],
  ])('§18.6 identity: of the address it says %s, as the token does', async (_what, given, told) => {
    const email = { email: 'ada@example.com' };
    const token = await startReplica().getToken(callerOf(await signIn({ ...email, ...given })));
    const { email: shown, email_verified } = decodeJwt(token);
    expect({ email: shown, email_verified }).toEqual({ ...email, ...told });
  });

  test('§18.6 identity: idp says whose user it is; the gateway itself and nobody are none of its', async () => {
    const replica = startReplica([SECRET], shared.store, 'https://idp.example');
    const caller = callerOf(await signIn({ sub: 'ada', idp: 'https://forged.example' }));
    expect(decodeJwt(await replica.getToken(caller))).toMatchObject({
      iss: BASE,
      sub: 'ada',
      idp: 'https://idp.example',
    });
    const user = { sub: 'ada', claims: {}, issuer: 'https://other.example' };
    const foreign = { ...caller, user };
    expect(decodeJwt(await replica.getToken(foreign))).toMatchObject({
      sub: 'ada',
      idp: 'https://other.example',
    });
    const nobody = { ...GATEWAY_CALLER, sessionId: 'a session without a user' };
    for (const other of [GATEWAY_CALLER, nobody]) {
      expect(decodeJwt(await replica.getToken(other))).not.toHaveProperty('idp');
    }
  });

  test("§18.6 identity: the caller's token is not in it, nor any other claim", async () => {
    const caller = await signIn({ sub: 'ada', phone: '555', secret: 'x' });
    const { getHeaders, getToken } = startReplica();
    expect(JSON.stringify(await getHeaders(callerOf(caller)))).not.toContain(caller);
    expect(Object.keys(decodeJwt(await getToken(callerOf(caller)))).sort()).toEqual([
      'aud',
      'exp',
      'iat',
      'iss',
      'jti',
      'sub',
    ]);
  });

  test('§18.6 identity: without a user the gateway names itself', async () => {
    const { getToken } = startReplica();
    expect(decodeJwt(await getToken(GATEWAY_CALLER))).toMatchObject({ sub: BASE, iss: BASE });
    const nobody = { ...GATEWAY_CALLER, sessionId: 'a session without a user' };
    expect(decodeJwt(await getToken(nobody))).toMatchObject({ sub: 'anonymous', iss: BASE });
  });

  test('§18.6 identity: what the URL has of a secret is not in the audience', async () => {
    const { identity } = startReplica();
    const token = await identity.issueToken(GATEWAY_CALLER, 'https://me:pw@wiki.example/mcp?key=x');
    expect(decodeJwt(token).aud).toBe(URL_OF_SERVER);
  });

  test('§18.6 identity: a token is used again while half of its time is left', async () => {
    const { getToken } = startReplica();
    const ada = callerOf(await signIn({ sub: 'ada' }));
    const first = await getToken(ada);
    shared.clock.advance(29_000);
    expect(await getToken(ada)).toBe(first);
    shared.clock.advance(2000);
    expect(await getToken(ada)).not.toBe(first);
  });

  test.each([
    { what: 'user', claims: { sub: 'eve' }, client: 'editor' },
    { what: 'email', claims: { email: 'other@example.com' }, client: 'editor' },
    { what: 'list of groups', claims: { groups: ['all', 'admins'] }, client: 'editor' },
    { what: 'client', claims: {}, client: 'other' },
  ])('§18.6 identity: another $what gets another token', async ({ claims, client }) => {
    const { getToken } = startReplica();
    const ada = { sub: 'ada', email: 'ada@example.com', groups: ['all'] };
    const first = await getToken(callerOf(await signIn(ada), 'editor'));
    const second = await getToken(callerOf(await signIn({ ...ada, ...claims }), client));
    expect(second).not.toBe(first);
    expect(decodeJwt(second)).toMatchObject(claims);
  });

  test('§18.6 identity: without a key the server cannot be used, and the model is told', async () => {
    shared.breakStore(true);
    const { getHeaders, getToken } = startReplica();
    await expect(getHeaders(GATEWAY_CALLER)).rejects.toMatchObject({
      name: 'UpstreamError',
      failure: 'unavailable',
      message: expect.stringMatching(/cannot sign now who calls/),
    });
    shared.breakStore(false);
    expect(await getToken(GATEWAY_CALLER)).not.toBe('');
  });
});

describe('the keys', () => {
  test('§18.6 identity: the key set has nothing private', async () => {
    const { identity } = startReplica();
    expect(await identity.getKeySet()).toEqual({
      keys: [
        {
          kty: 'EC',
          crv: 'P-256',
          x: expect.stringMatching(/^[\w-]{43}$/),
          y: expect.stringMatching(/^[\w-]{43}$/),
          kid: expect.stringMatching(/^[\w-]{43}$/),
          alg: 'ES256',
          use: 'sig',
        },
      ],
    });
  });

  test('§18.6 identity: all replicas sign with the same key, whoever made it', async () => {
    const replicas = Array.from({ length: 5 }, () => startReplica());
    const tokens = await Promise.all(replicas.map(({ getToken }) => getToken(GATEWAY_CALLER)));
    expect(new Set(tokens.map((token) => decodeProtectedHeader(token).kid)).size).toBe(1);
    for (const token of tokens) await startReplica().verify(token);
  });

  test('§18.6 identity: in the store the key is sealed', async () => {
    await startReplica().getToken(GATEWAY_CALLER);
    const month = Math.floor(shared.clock.now() / (30 * DAY_MS));
    const stored = await shared.store.get(`identity:key:${month}`);
    expect(stored).toMatch(/^[\w-]+=[\w-]+$/);
    expect(Buffer.from(stored ?? '', 'base64url').toString('latin1')).not.toContain('PRIVATE');
  });

  test('§18.6 identity: within 100 days each token is valid at every replica, and keys change monthly', async () => {
    const signer = startReplica();
    const checker = startReplica();
    const kids = new Set<string | undefined>();
    for (let hours = 0; hours < 2400; hours += 5) {
      const token = await signer.getToken(GATEWAY_CALLER);
      kids.add(decodeProtectedHeader(token).kid);
      shared.clock.advance(59_000);
      await checker.verify(token);
      shared.clock.advance(5 * 3_600_000 - 59_000);
      expect((await checker.kids()).length).toBeLessThanOrEqual(2);
    }
    expect(kids.size).toBe(4);
  });

  test('§18.6 identity: a key is published a day before it signs, and a day after', async () => {
    const replica = startReplica();
    const { clock } = shared;
    const monthMs = 30 * DAY_MS;
    const untilNext = monthMs - (clock.now() % monthMs);
    const [current] = await replica.kids();
    clock.sleep(untilNext - DAY_MS + 1000);
    const both = await replica.kids();
    expect(both).toHaveLength(2);
    expect(both).toContain(current);
    clock.sleep(2 * DAY_MS - 3000);
    expect(await replica.kids()).toEqual(both);
    clock.advance(3000);
    expect(await replica.kids()).toEqual(both.filter((kid: string) => kid !== current));
  });

  test('§18.6 identity: while the store is down a replica goes on with the key that it has', async () => {
    const replica = startReplica();
    const before = await replica.getToken(GATEWAY_CALLER);
    shared.breakStore(true);
    shared.clock.advance(120_000);
    const token = await replica.getToken(GATEWAY_CALLER);
    expect(token).not.toBe(before);
    await replica.verify(token);
  });

  test('§18.6 identity: a store that lost its data gets the key back that replicas have', async () => {
    const replica = startReplica();
    const [kid] = await replica.kids();
    const month = Math.floor(shared.clock.now() / (30 * DAY_MS));
    await shared.store.delete(`identity:key:${month}`);
    shared.clock.advance(61_000);
    await replica.getToken(GATEWAY_CALLER);
    expect(await startReplica().kids()).toEqual([kid]);
  });

  test('§18.6 identity: the secret can be changed as logins allow it, and the key stays', async () => {
    const [kid] = await startReplica([SECRET]).kids();
    expect(await startReplica([OTHER_SECRET, SECRET]).kids()).toEqual([kid]);
    expect(await startReplica([OTHER_SECRET]).kids()).toEqual([kid]);
  });

  test('§18.6 identity: a key that cannot be opened is replaced, and the log says why', async () => {
    const [kid] = await startReplica([SECRET]).kids();
    const other = startReplica([OTHER_SECRET]);
    const kids = await other.kids();
    expect(kids).toHaveLength(1);
    expect(kids).not.toEqual([kid]);
    expect(other.lines).toEqual([
      expect.objectContaining({
        level: 'warn',
        msg: expect.stringContaining('OAUTH_STATE_SECRET'),
      }),
    ]);
  });
});
