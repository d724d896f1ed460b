import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, type JWK, SignJWT } from 'jose';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import { giveBackSigningKey, type SigningKey, takeSigningKey } from './signing-keys.ts';

/** What the issuer's server does when it is asked. */
export type Behaviour =
  | 'ok'
  | 'down'
  | 'slow'
  | 'error'
  | 'garbage'
  | 'no set'
  | 'empty'
  | 'huge'
  | 'redirect';

export interface SignOptions {
  readonly alg?: string;
  /** null leaves it out. */
  readonly kid?: string | null;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly key?: CryptoKey;
}

export interface Issuer {
  readonly url: string;
  /** Requests answered so far. */
  readonly fetches: { discovery: number; keys: number; elsewhere: number };
  /** A token; defaults: this issuer, an hour, `user-1`, the audience of the tests' gateway. */
  sign(claims?: Readonly<Record<string, unknown>>, options?: SignOptions): Promise<string>;
  /** Replaces the key of `alg` in the set by a new one under a new kid. */
  rotate(alg?: string): Promise<void>;
  /** The keys as served. */
  keys: JWK[];
  behave(behaviour: Behaviour): void;
  /** Members over the discovery document's own. */
  document: Record<string, unknown>;
  close(): Promise<void>;
}

export const AUDIENCE = 'http://localhost:3000/mcp';

/** In broker mode the issuer's tokens are accepted with these settings alone. */
export const ACCEPT_PROVIDER_TOKENS = {
  OAUTH_ACCEPT_PROVIDER_TOKENS: 'true',
  OIDC_AUDIENCE: AUDIENCE,
} as const;

export interface IssuerOptions {
  readonly clock?: Clock;
  /** A free one unless given. */
  readonly port?: number;
  /** What the issuer has after host and port. */
  readonly path?: string;
  readonly keysPath?: string;
  /** Is asked first, for a provider that is more than an issuer: whether it answers the request. */
  readonly answer?: (req: IncomingMessage, res: ServerResponse) => boolean;
}

/** A real server with a discovery document and a key set; its tokens are made by jose. */
export async function startIssuer({
  clock = systemClock,
  port = 0,
  path = '',
  keysPath = '/jwks',
  answer = () => false,
}: IssuerOptions = {}): Promise<Issuer> {
  const taken: SigningKey[] = [];
  const signing = new Map<string, { readonly kid: string; readonly privateKey: CryptoKey }>();
  const fetches = { discovery: 0, keys: 0, elsewhere: 0 };
  let behaviour: Behaviour = 'ok';

  const discoveryPath = `${path.replace(/\/+$/, '')}/.well-known/openid-configuration`;

  const server = createServer((req, res) => {
    if (answer(req, res)) return;
    if (req.url === discoveryPath) {
      fetches.discovery += 1;
      if (behaviour === 'down') res.destroy();
      else
        sendJson(res, { issuer: issuer.url, jwks_uri: `${origin}${keysPath}`, ...issuer.document });
      return;
    }
    if (req.url !== keysPath) {
      fetches.elsewhere += 1;
      sendJson(res, { keys: issuer.keys });
      return;
    }
    fetches.keys += 1;
    answers[behaviour](res);
  });

  const answers: Record<Behaviour, (res: ServerResponse) => void> = {
    ok: (res) => sendJson(res, { keys: issuer.keys }),
    down: (res) => res.destroy(),
    slow: () => {},
    error: (res) => res.writeHead(500).end('oops'),
    garbage: (res) => res.end('<html>not a key set</html>'),
    'no set': (res) => sendJson(res, { keys: 'none' }),
    empty: (res) => sendJson(res, { keys: [] }),
    huge: (res) => sendJson(res, { keys: issuer.keys, fill: 'x'.repeat(10_000_000) }),
    redirect: (res) => res.writeHead(302, { location: `${origin}/elsewhere` }).end(),
  };

  // On a busy machine it would close idle connections just when the gateway uses them again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening, failed) => {
    server.once('error', failed).listen(port, '127.0.0.1', listening);
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `${origin}${path}`;

  async function addKey(alg: string) {
    const key = await takeSigningKey(alg);
    taken.push(key);
    const signer = { kid: `${alg}-${taken.length}`, privateKey: key.privateKey };
    const jwk = { ...key.publicJwk, kid: signer.kid, alg, use: 'sig' };
    issuer.keys = [...issuer.keys.filter((other) => other.alg !== alg), jwk];
    signing.set(alg, signer);
    return signer;
  }

  const issuer: Issuer = {
    url,
    fetches,
    keys: [],
    document: {},
    behave(wanted) {
      behaviour = wanted;
    },
    async rotate(alg = 'RS256') {
      await addKey(alg);
    },
    async sign(claims = {}, { alg = 'RS256', kid, header, key } = {}) {
      const own = signing.get(alg) ?? (await addKey(alg));
      const named = kid === null ? {} : { kid: kid ?? own.kid };
      const exp = Math.floor(clock.now() / 1000) + 3600;
      const all = { iss: url, aud: AUDIENCE, sub: 'user-1', exp, ...claims };
      return new SignJWT(all)
        .setProtectedHeader({ alg, ...named, ...header })
        .sign(key ?? own.privateKey);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      for (const key of taken.splice(0)) giveBackSigningKey(key);
    },
  };
  await addKey('RS256');
  return issuer;
}

function sendJson(res: ServerResponse, body: unknown): void {
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
