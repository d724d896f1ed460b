// Spec §4.1: a path is matched as it was sent, character by character.
import type { Endpoint } from '../core/endpoint.ts';
import { fail } from '../core/errors/gateway-error.ts';

/** The endpoints of one path. */
export interface Route {
  readonly path: string;
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  /** Value of the `Allow` header. */
  readonly allow: string;
  /** Exempt from the Host check. */
  readonly isProbe: boolean;
  /** Reached by a browser's own navigation only. */
  readonly isNavigation: boolean;
}

export type Router = (path: string) => Route | undefined;

export function createRouter(endpoints: readonly Endpoint[]): Router {
  const routes = new Map<string, Route>();
  for (const { path } of endpoints) routes.set(path, createRoute(path, endpoints));
  return (path) => routes.get(path);
}

/** @throws GatewayError `method_not_allowed`. HEAD is GET without a body. */
export function findEndpoint({ endpoints, allow }: Route, method: string): Endpoint {
  return (
    endpoints.get(method === 'HEAD' ? 'GET' : method) ??
    fail('method_not_allowed', { headers: { Allow: allow } })
  );
}

function createRoute(path: string, all: readonly Endpoint[]): Route {
  const endpoints = all.filter((endpoint) => endpoint.path === path);
  const listed = endpoints.filter(({ isUnlisted }) => !isUnlisted).map(({ method }) => method);
  const allow = listed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return {
    path,
    endpoints: new Map(endpoints.map((endpoint) => [endpoint.method, endpoint])),
    allow: allow.join(', '),
    isProbe: endpoints.some(({ isProbe }) => isProbe),
    isNavigation: endpoints.some(({ isNavigation }) => isNavigation),
  };
}
