// What a protected server says of itself (RFC 9728), and the guard before its MCP endpoint (RFC 6750).
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Answer, type Routes, send } from './authorization-server.ts';
import type { Gate } from './gate.ts';
import type { ServerHabits } from './habits.ts';
import type { ServerLogin, ServerLogins } from './logins.ts';
import { createMcpEndpoint, type Era } from './mcp-endpoint.ts';
import { WIDER } from './protected-tools.ts';

export interface ResourceServerDeps {
  readonly habits: ServerHabits;
  readonly logins: ServerLogins;
  readonly gate: Gate;
  readonly era: Era;
  /** Of the MCP endpoint. */
  readonly getUrl: () => string;
  readonly getIssuer: () => string;
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource/mcp';
const MOVED = `/moved${WELL_KNOWN}`;

export function createResourceServer(deps: ResourceServerDeps) {
  const { habits, logins, getUrl } = deps;
  const mcp = createMcpEndpoint(deps.era, deps.gate);
  const metadataPath = { elsewhere: '/about/this-resource', nowhere: undefined };
  const path =
    habits.resourceMetadata === 'elsewhere' || habits.resourceMetadata === 'nowhere'
      ? metadataPath[habits.resourceMetadata]
      : WELL_KNOWN;

  function refuseToken(res: ServerResponse, status: 401 | 403, members: Record<string, string>) {
    const metadataUrl = `${new URL(getUrl()).origin}${path ?? WELL_KNOWN}`;
    const all = { ...members, ...(habits.namesMetadata && { resource_metadata: metadataUrl }) };
    const pairs = Object.entries(all).map(([name, value]) => `${name}="${value}"`);
    res.setHeader('www-authenticate', `Bearer ${pairs.join(', ')}`.trimEnd());
    send(res, { status, body: { error: members.error ?? 'unauthorized' } });
  }

  const isOpen = (message: Message | undefined): boolean =>
    habits.listsToAnybody !== false &&
    isAboutLists(message) &&
    !(habits.listsToAnybody === 'but ping' && message?.method === 'ping');

  const findLogin = (req: IncomingMessage): ServerLogin | undefined =>
    logins.find(readBearer(req) ?? '');

  const refused = new Map<string | undefined, number>();

  const answerGuarded: Answer = async (req, res, body) => {
    const message = parseMessage(body);
    const login = findLogin(req);
    const status = refused.get(message?.params?.name) ?? refused.get(message?.method);
    if (status !== undefined && status !== 401) {
      send(res, { status, body: {} });
      return;
    }
    if (status === 401 || (login === undefined && !isOpen(message))) {
      const hasToken = req.headers.authorization !== undefined;
      const scope = habits.resourceScopes?.join(' ');
      refuseToken(res, 401, {
        ...(hasToken && { error: 'invalid_token' }),
        ...(habits.repeatsTokens && { error_description: `${readBearer(req)} is not good` }),
        ...(scope !== undefined && { scope }),
      });
      return;
    }
    if (message?.params?.name === WIDER.tool && !login?.scopes.includes(WIDER.scope)) {
      refuseToken(res, 403, {
        error: 'insufficient_scope',
        scope: [...(habits.resourceScopes ?? []), WIDER.scope].join(' '),
      });
      return;
    }
    const auth = login && {
      token: readBearer(req) ?? '',
      clientId: login.clientId,
      scopes: [...login.scopes],
      extra: { account: login.account },
    };
    await mcp.answer(Object.assign(req, auth && { auth }), res, message);
  };

  const answerMetadata: Answer = (_req, res, _body, { pathname }) => {
    const kind = habits.resourceMetadata;
    if (kind === 'hanging') return;
    if (kind === 'a page') {
      res.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>');
      return;
    }
    if (kind === 'by redirect' && pathname !== MOVED) {
      res.writeHead(302, { location: MOVED }).end();
      return;
    }
    send(res, {
      status: 200,
      body: {
        resource: kind === 'of another resource' ? 'https://other.example/mcp' : getUrl(),
        authorization_servers: [deps.getIssuer()],
        ...(habits.resourceScopes && { scopes_supported: habits.resourceScopes }),
        bearer_methods_supported: ['header'],
        ...habits.resourceDocument,
        ...(kind === 'too long' && { fill: 'x'.repeat(5_000_000) }),
      },
    });
  };

  const metadata = { endpoint: 'resource metadata', answer: answerMetadata };
  const routes: Routes = new Map([
    ['/mcp', { endpoint: 'mcp', answer: answerGuarded }],
    [path, metadata],
    [MOVED, metadata],
  ]);
  return {
    findLogin,
    routes,
    loseSessions: mcp.loseSessions,
    refuse: (name: string, status: number) => void refused.set(name, status),
  };
}

interface Message {
  readonly method?: string;
  readonly params?: { readonly name?: string };
}

export function parseMessage(body: string): Message | undefined {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const readBearer = (req: IncomingMessage): string | undefined =>
  /^Bearer (.+)$/i.exec(req.headers.authorization ?? '')?.[1];

const isAboutLists = (message: Message | undefined): boolean =>
  ['initialize', 'notifications/initialized', 'tools/list', 'server/discover', 'ping'].includes(
    message?.method ?? '',
  );
