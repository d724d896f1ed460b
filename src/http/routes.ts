// Spec §4.1: the endpoint table.
import { type ErrorFormat, JSONRPC } from '../core/errors/render.ts';
import type { GatewayRequest, Reply, RequestBody } from '../core/message.ts';
import type { UserContext } from '../core/user-context.ts';
import type { SessionLookup } from '../features/limits/limiter.ts';
import type { LimitGroup } from '../features/limits/rules.ts';

/** What the guards found out before a route is asked. */
export interface Given {
  /** Present on routes with `auth`, unless the service runs without authentication. */
  readonly user: UserContext | undefined;
  /** Looked up on routes with `limit`. */
  readonly session: SessionLookup;
  /** Present on routes with `body`. */
  readonly body: RequestBody;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Exact path, and the value of the metrics' label `route`. */
  readonly path: string;
  readonly errors: ErrorFormat;
  /** Spec §8: counted in this group; the session of `mcp-session-id` is read beside. */
  readonly limit?: LimitGroup;
  /** Spec §5.1: needs a bearer token. */
  readonly auth?: true;
  readonly body?: 'json' | 'json or form';
  /** Bytes; where it is less than `MAX_BODY_BYTES`. */
  readonly maxBodyBytes?: number;
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
  handle(request: GatewayRequest, given: Given): Reply | Promise<Reply>;
}

type Handle = Route['handle'];

/** The features' handlers that the composition root brings. */
export interface Handlers {
  readonly mcp: {
    readonly post: Handle;
    readonly delete: Handle;
    readonly get: Handle;
    /** In place of `get`; undefined without `MCP_STREAMS`. */
    readonly stream: Handle | undefined;
  };
  readonly oauth: {
    readonly authorize: Handle;
    readonly token: Handle;
    readonly register: Handle;
    readonly revoke: Handle;
    /** Undefined without a consent page. */
    readonly consent: Handle | undefined;
    /** Undefined in proxy mode. */
    readonly callback: Handle | undefined;
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
  // Spec §8 has none for them; a broker asks the provider in its own name.
  const tokenLimit = oauth.callback === undefined ? {} : ({ limit: 'token' } as const);
  const mcpRoute = { path: '/mcp', errors: JSONRPC } as const;
  const mcpCall = { ...mcpRoute, limit: 'mcp', auth: true } as const;
  const wellKnown = (path: string, errors: ErrorFormat, handle: Handle) =>
    ({ method: 'GET', path: `/.well-known/${path}`, errors, handle }) as const;

  return [
    { method: 'POST', ...mcpCall, body: 'json', handle: mcp.post },
    { method: 'DELETE', ...mcpCall, handle: mcp.delete },
    mcp.stream === undefined
      ? { method: 'GET', ...mcpRoute, unlisted: true, handle: mcp.get }
      : { method: 'GET', ...mcpCall, handle: mcp.stream },
    {
      method: 'GET',
      path: '/oauth/authorize',
      errors: OAUTH,
      limit: 'authorize',
      pages: oauth.callback !== undefined,
      navigation: oauth.consent !== undefined || oauth.callback !== undefined,
      ...opener,
      handle: oauth.authorize,
    },
    ...given(oauth.consent, (handle) => ({
      method: 'POST',
      path: '/oauth/consent',
      errors: OAUTH,
      limit: 'consent',
      body: 'json or form',
      maxBodyBytes: OAUTH_MAX_BYTES,
      pages: true,
      navigation: true,
      ...opener,
      handle,
    })),
    ...given(oauth.callback, (handle) => ({
      method: 'GET',
      path: '/oauth/callback',
      errors: OAUTH,
      limit: 'callback',
      pages: true,
      navigation: true,
      ...opener,
      handle,
    })),
    {
      method: 'POST',
      path: '/oauth/token',
      errors: OAUTH,
      body: 'json or form',
      maxBodyBytes: OAUTH_MAX_BYTES,
      ...tokenLimit,
      handle: oauth.token,
    },
    {
      method: 'POST',
      path: '/oauth/register',
      errors: REGISTRATION,
      limit: 'dcr',
      body: 'json',
      maxBodyBytes: OAUTH_MAX_BYTES,
      handle: oauth.register,
    },
    {
      method: 'POST',
      path: '/oauth/revoke',
      errors: OAUTH,
      body: 'json or form',
      maxBodyBytes: OAUTH_MAX_BYTES,
      ...tokenLimit,
      handle: oauth.revoke,
    },
    wellKnown('oauth-protected-resource', JSONRPC, discovery.protectedResource),
    wellKnown('oauth-protected-resource/mcp', JSONRPC, discovery.protectedMcp),
    wellKnown('oauth-authorization-server', OAUTH, discovery.authorizationServer),
    wellKnown('openid-configuration', OAUTH, discovery.openidConfiguration),
    { method: 'GET', path: '/health', errors: JSONRPC, probe: true, handle: health },
    { method: 'GET', path: '/health/ready', errors: JSONRPC, probe: true, handle: readiness },
    ...given(metrics, (handle) => ({
      method: 'GET',
      path: '/metrics',
      errors: JSONRPC,
      probe: true,
      handle,
    })),
  ];
}

/** A route that is there only in some configurations. */
const given = (handle: Handle | undefined, route: (handle: Handle) => Route): readonly Route[] =>
  handle === undefined ? [] : [route(handle)];
