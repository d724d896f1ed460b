// From requests to the features' own terms, and nothing more.
import { type GatewayRequest, header, type Reply, type RequestBody } from '../core/message.ts';
import { createProtectedResource } from '../features/discovery/protected-resource.ts';
import { health } from '../features/health/health.ts';
import type { McpEndpoint } from '../features/mcp/endpoint.ts';
import type { McpCall } from '../features/mcp/era-handler.ts';
import { createNoStream } from '../features/mcp/no-stream.ts';
import type { OAuthEndpoints } from '../features/oauth/oauth.ts';
import type { Given, Handlers } from './routes.ts';

export interface Features {
  readonly baseUrl: string;
  /** Headers of a 401; undefined when nobody has to log in. */
  readonly challenge: Readonly<Record<string, string>> | undefined;
  readonly mcp: McpEndpoint;
  readonly oauth: OAuthEndpoints;
  readonly authorizationServer: {
    metadata(): Promise<Reply>;
    openidConfiguration(): Promise<Reply>;
  };
  readonly readiness: () => Promise<Reply>;
  readonly metrics: (() => Promise<Reply>) | undefined;
}

export function createHandlers(features: Features): Handlers {
  const { baseUrl, challenge, mcp, oauth, authorizationServer, readiness, metrics } = features;
  const authorization = (request: GatewayRequest) => header(request, 'authorization');
  const cookie = (request: GatewayRequest) => header(request, 'cookie');
  const { consent, callback } = oauth;
  const { get: stream } = mcp;

  return {
    mcp: {
      post: (request, given) => mcp.post(callOf(request, given), jsonOf(given.body)),
      delete: (request, given) => mcp.delete(callOf(request, given)),
      get: createNoStream(challenge),
      stream: stream && ((request, given) => stream(callOf(request, given))),
    },
    oauth: {
      authorize: (request) => oauth.authorize(request.query, cookie(request)),
      consent: consent && ((request, body) => consent(body, cookie(request))),
      callback: callback && ((request) => callback(request.query, cookie(request))),
      token: (request, body) => oauth.token(body, authorization(request)),
      register: (request, body) => oauth.register(jsonOf(body), authorization(request)),
      revoke: (request, body) => oauth.revoke(body, authorization(request)),
    },
    discovery: {
      protectedResource: createProtectedResource(baseUrl, ''),
      protectedMcp: createProtectedResource(baseUrl, '/mcp'),
      authorizationServer: authorizationServer.metadata,
      openidConfiguration: authorizationServer.openidConfiguration,
    },
    health,
    readiness,
    metrics,
  };
}

const callOf = (request: GatewayRequest, { user, session, body }: Given): McpCall => ({
  request,
  user,
  session,
  sessionId: header(request, 'mcp-session-id'),
  hold: body.hold,
});

const jsonOf = (body: RequestBody): unknown => (body.type === 'json' ? body.value : undefined);
