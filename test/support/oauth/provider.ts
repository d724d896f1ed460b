import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createDevProvider, generateProviderKeys } from '../../../src/cli/dev-provider/provider.ts';

export interface ProviderOptions {
  /** BASE_URL of the gateway that it is for. */
  readonly gatewayUrl: string;
  /** A free one unless given. */
  readonly port?: number;
  /** With a secret its client is confidential. */
  readonly client?: { readonly secret: string; readonly auth: 'post' | 'basic' };
  readonly accessTokenTtlSeconds?: number;
  /** False leaves RFC 9207's `iss` out of the redirect, as most providers do. */
  readonly sendsIssuer?: boolean;
  /** Redirect URIs that its client was not registered with. */
  readonly unknownRedirectUri?: RegExp;
  /** By how much its answers say that its clock is ahead. */
  readonly clockOffsetSeconds?: number;
}

export interface Provider {
  readonly issuer: string;
  /** What a gateway has to be told about it. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const CLIENT_ID = 'gateway';

/** Making an RSA key takes a while: once per file of tests. */
let keys: ReturnType<typeof generateProviderKeys> | undefined;

/** A real `oidc-provider` on a free loopback port, in which any name logs in. */
export async function startProvider(options: ProviderOptions): Promise<Provider> {
  const {
    gatewayUrl,
    port = 0,
    client,
    accessTokenTtlSeconds = 3600,
    sendsIssuer = true,
    unknownRedirectUri,
    clockOffsetSeconds,
  } = options;
  const server = createServer();
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  keys ??= generateProviderKeys();
  const serve = await createDevProvider({
    issuer,
    keys: await keys,
    gatewayUrl,
    audience: [gatewayUrl, `${gatewayUrl}/`, `${gatewayUrl}/mcp`],
    client: { id: CLIENT_ID, ...client },
    accessTokenTtlSeconds,
  });
  server.on('request', (req, res) => {
    if (!sendsIssuer) leaveIssuerOut(res);
    if (clockOffsetSeconds !== undefined) {
      res.setHeader('Date', new Date(Date.now() + clockOffsetSeconds * 1000).toUTCString());
    }
    if (unknownRedirectUri?.test(readRedirectUri(req.url))) refuseRedirectUri(res);
    else serve(req, res);
  });

  return {
    issuer,
    env: {
      OIDC_ISSUER: issuer,
      OAUTH_AUTHORIZATION_URL: `${issuer}/auth`,
      OAUTH_TOKEN_URL: `${issuer}/token`,
      OAUTH_REVOCATION_URL: `${issuer}/token/revocation`,
      OAUTH_CLIENT_ID: CLIENT_ID,
      ...(client && { OAUTH_CLIENT_SECRET: client.secret, OAUTH_CLIENT_AUTH: client.auth }),
    },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const readRedirectUri = (target = '/'): string =>
  new URL(target, 'http://provider.invalid').searchParams.get('redirect_uri') ?? '';

/** On a page of its own, as oidc-provider and others do: it must not redirect there. */
function refuseRedirectUri(res: ServerResponse): void {
  res.writeHead(400, { 'Content-Type': 'text/plain' });
  res.end(
    "invalid_redirect_uri: redirect_uri did not match any of the client's registered redirect_uris",
  );
}

function leaveIssuerOut(res: ServerResponse): void {
  const setHeader = res.setHeader.bind(res);
  res.setHeader = (name, value) => {
    if (name.toLowerCase() !== 'location' || !URL.canParse(String(value))) {
      return setHeader(name, value);
    }
    const url = new URL(String(value));
    url.searchParams.delete('iss');
    return setHeader(name, url.href);
  };
}
