// The half of ID-JAG that is the identity provider's: for an ID token of a client it gives that client an assertion about the user
// (RFC 8693, draft-ietf-oauth-identity-assertion-authz-grant §4.3), for those servers that its administrator has approved.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../src/platform/clock.ts';
import { claimsOfUser, ID_JAG_TYPE } from '../oauth/id-jag.ts';
import type { Issuer } from '../oauth/issuer.ts';

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TOKEN_TYPES = 'urn:ietf:params:oauth:token-type';

export interface IdJagProvider {
  /** Of its token endpoint; the issuer's discovery document names it. */
  readonly tokenUrl: string;
  /** Whoever logged in at the client: its ID token. */
  logIn(claims?: Readonly<Record<string, unknown>>): Promise<string>;
  /** What the client was given. */
  readonly given: string[];
  close(): Promise<void>;
}

export interface IdJagProviderOptions {
  readonly issuer: Issuer;
  /** Of the gateway, too: one that stands still takes no assertion of later. */
  readonly clock: Pick<Clock, 'now'>;
  /** The client by its names here and at the server that it calls. */
  readonly client: { readonly id: string; readonly secret: string; readonly idAtServer: string };
  /** Issuers of the servers that the client may call. */
  readonly approved: readonly string[];
}

export async function startIdJagProvider({
  issuer,
  clock,
  client,
  approved,
}: IdJagProviderOptions): Promise<IdJagProvider> {
  const users = new Map<string, Readonly<Record<string, unknown>>>();
  const given: string[] = [];

  async function exchange(form: URLSearchParams): Promise<readonly [number, object]> {
    const isClient =
      form.get('client_id') === client.id && form.get('client_secret') === client.secret;
    if (!isClient) return [401, { error: 'invalid_client' }];
    const isExchange =
      form.get('grant_type') === TOKEN_EXCHANGE &&
      form.get('requested_token_type') === `${TOKEN_TYPES}:id-jag` &&
      form.get('subject_token_type') === `${TOKEN_TYPES}:id_token`;
    if (!isExchange) return [400, { error: 'invalid_request' }];
    const user = users.get(form.get('subject_token') ?? '');
    if (user === undefined) return [400, { error: 'invalid_grant' }];
    // Identifiers of issuers are compared as they stand; URL objects of clients add a slash.
    const audience = approved.find((one) => one === form.get('audience'));
    if (audience === undefined) return [400, { error: 'invalid_target' }];
    const claims = {
      ...user,
      aud: audience,
      client_id: client.idAtServer,
      resource: form.get('resource') ?? undefined,
      scope: form.get('scope') ?? undefined,
    };
    const assertion = await issuer.sign(claimsOfUser(issuer.url, clock.now(), claims), {
      header: { typ: ID_JAG_TYPE },
    });
    given.push(assertion);
    return [
      200,
      {
        issued_token_type: `${TOKEN_TYPES}:id-jag`,
        access_token: assertion,
        token_type: 'N_A',
        expires_in: 300,
      },
    ];
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of req) body += chunk;
    const [status, answer] = await exchange(new URLSearchParams(body));
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }

  const server = createServer((req, res) => void handle(req, res));
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const tokenUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
  return {
    tokenUrl,
    given,
    async logIn(claims = {}) {
      const user = { sub: 'user-1', ...claims };
      const idToken = await issuer.sign({ ...user, aud: client.id });
      users.set(idToken, user);
      return idToken;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
