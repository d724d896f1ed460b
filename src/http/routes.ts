// Spec §4.1: the endpoint table.
import { type ErrorFormat, JSONRPC } from '../core/errors/render.ts';
import type { GatewayRequest, PendingReply, Reply, RequestBody } from '../core/message.ts';
import type { UserContext } from '../core/user-context.ts';
import type { SessionLookup } from '../features/limits/limiter.ts';
import type { LimitGroup } from '../features/limits/rules.ts';

/** What is known of a call of `/mcp` when it is run. */
export interface Given {
  /** Undefined where the service runs without authentication. */
  readonly user: UserContext | undefined;
  /** What the store said of `mcp-session-id`. */
  readonly session: SessionLookup;
  readonly body: RequestBody;
}

export type Route = OpenRoute | CallRoute | OAuthRoute;

interface RouteBase {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Exact path, and the value of the metrics' label `route`. */
  readonly path: string;
  readonly errors: ErrorFormat;
  /** Decisions 2: asked by address, so exempt from the Host check. */
  readonly probe?: true;
  /** A browser comes here: errors are pages where `Accept` prefers them. */
  readonly pages?: boolean;
  /**
   * A browser comes here by itself, as the user's: no page may read the answer or send the form, be
   * its origin allowed or not.
   */
  readonly navigation?: boolean;
  /** On every reply of the route, errors included. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Not listed in `Allow`: the route only says why there is nothing. */
  readonly unlisted?: true;
}

/** Not limited, and for everybody. */
export interface OpenRoute extends RouteBase {
  readonly kind: 'open';
  handle(request: GatewayRequest): Reply | Promise<Reply>;
}

/** Spec §5.1: needs a bearer token, which decides how it is counted. */
export interface CallRoute extends RouteBase {
  readonly kind: 'call';
  readonly limit: LimitGroup;
  readonly body?: 'json';
  handle(request: GatewayRequest, given: Given): Reply | Promise<Reply>;
}

/** Counted by all callers only where what was sent holds (decisions 10). */
export interface OAuthRoute extends RouteBase {
  readonly kind: 'oauth';
  readonly limit: LimitGroup;
  readonly body?: 'json' | 'json or form';
  /** Bytes; where it is less than `MAX_BODY_BYTES`. */
  readonly maxBodyBytes?: number;
  /** Without effect. @throws GatewayError for what does not hold. */
  judge(request: GatewayRequest, body: RequestBody): Promise<PendingReply>;
}

/** Of a request that has none, or whose body is not read. */
export const NO_BODY: RequestBody = {
  type: 'json',
  value: undefined,
  text: '',
  hold: () => () => {},
};

type Handle = OpenRoute['handle'];
type Call = CallRoute['handle'];
type Judge = OAuthRoute['judge'];

/** The features' handlers that the composition root brings. */
export interface Handlers {
  readonly mcp: {
    readonly post: Call;
    readonly delete: Call;
    readonly get: Handle;
    /** In place of `get`; undefined without `MCP_STREAMS`. */
    readonly stream: Call | undefined;
  };
  readonly oauth: {
    readonly authorize: Judge;
    readonly token: Judge;
    readonly register: Judge;
    readonly revoke: Judge;
    /** Undefined without a consent page. */
    readonly consent: Judge | undefined;
    /** Undefined in proxy mode. */
    readonly callback: Judge | undefined;
  };
  readonly discovery: {
    readonly protectedResource: Handle;
    readonly protectedMcp: Handle;
    readonly authorizationServer: Handle;
    readonly openidConfiguration: Handle;
  };
  readonly health: Handle;
  readonly readiness: Handle;
  /** Undefined unless `METRICS_ENABLED=true`. */
  readonly metrics: Handle | undefined;
}

/** Anybody may send these, token or not: enough for ten redirect URIs and all other members. */
const OAUTH_MAX_BYTES = 65_536;

const OAUTH: ErrorFormat = { form: 'oauth', body: 'invalid_request' };
const REGISTRATION: ErrorFormat = { form: 'oauth', body: 'invalid_client_metadata' };

export interface RouteOptions {
  /** `OAUTH_POPUPS`: the pages of the log-in keep their opener. */
  readonly popups: boolean;
}

export function createRoutes(handlers: Handlers, { popups }: RouteOptions): readonly Route[] {
  const { mcp, oauth, discovery, health, readiness, metrics } = handlers;
  const opener = popups ? { headers: { 'Cross-Origin-Opener-Policy': 'unsafe-none' } } : {};
  const mcpRoute = { path: '/mcp', errors: JSONRPC } as const;
  const mcpCall = { ...mcpRoute, kind: 'call', limit: 'mcp' } as const;
  const wellKnown = (path: string, errors: ErrorFormat, handle: Handle) =>
    ({ kind: 'open', method: 'GET', path: `/.well-known/${path}`, errors, handle }) as const;

  return [
    { method: 'POST', ...mcpCall, body: 'json', handle: mcp.post },
    { method: 'DELETE', ...mcpCall, handle: mcp.delete },
    mcp.stream === undefined
      ? { kind: 'open', method: 'GET', ...mcpRoute, unlisted: true, handle: mcp.get }
      : { method: 'GET', ...mcpCall, handle: mcp.stream },
    {
      kind: 'oauth',
      method: 'GET',
      path: '/oauth/authorize',
      errors: OAUTH,
      limit: 'authorize',
      pages: oauth.callback !== undefined,
      navigation: oauth.consent !== undefined || oauth.callback !== undefined,
      ...opener,
      judge: oauth.authorize,
    },
    ...given(oauth.consent, (judge) => ({
      kind: 'oauth',
      method: 'POST',
      path: '/oauth/consent',
      errors: OAUTH,
      limit: 'consent',
      body: 'json or form',
      maxBodyBytes: OAUTH_MAX_BYTES,
      pages: true,
      navigation: true,
      ...opener,
      judge,
    })),
    ...given(oauth.callback, (judge) => ({
      kind: 'oauth',
      method: 'GET',
      path: '/oauth/callback',
      errors: OAUTH,
      limit: 'callback',
      pages: true,
      navigation: true,
      ...opener,
      judge,
    })),
    {
      kind: 'oauth',
      method: 'POST',
      path: '/oauth/token',
      errors: OAUTH,
      body: 'json or form',
      maxBodyBytes: OAUTH_MAX_BYTES,
      limit: 'token',
      judge: oauth.token,
    },
    {
      kind: 'oauth',
      method: 'POST',
      path: '/oauth/register',
      errors: REGISTRATION,
      limit: 'dcr',
      body: 'json',
      maxBodyBytes: OAUTH_MAX_BYTES,
      judge: oauth.register,
    },
    {
      kind: 'oauth',
      method: 'POST',
      path: '/oauth/revoke',
      errors: OAUTH,
      body: 'json or form',
      maxBodyBytes: OAUTH_MAX_BYTES,
      limit: 'token',
      judge: oauth.revoke,
    },
    wellKnown('oauth-protected-resource', JSONRPC, discovery.protectedResource),
    wellKnown('oauth-protected-resource/mcp', JSONRPC, discovery.protectedMcp),
    wellKnown('oauth-authorization-server', OAUTH, discovery.authorizationServer),
    wellKnown('openid-configuration', OAUTH, discovery.openidConfiguration),
    { kind: 'open', method: 'GET', path: '/health', errors: JSONRPC, probe: true, handle: health },
    {
      kind: 'open',
      method: 'GET',
      path: '/health/ready',
      errors: JSONRPC,
      probe: true,
      handle: readiness,
    },
    ...given(metrics, (handle) => ({
      kind: 'open',
      method: 'GET',
      path: '/metrics',
      errors: JSONRPC,
      probe: true,
      handle,
    })),
  ];
}

/** A route that is there only in some configurations. */
const given = <Work>(work: Work | undefined, route: (work: Work) => Route): readonly Route[] =>
  work === undefined ? [] : [route(work)];
