// Spec §4.1, decisions 2: a path is matched as it was sent, character by character.
import { fail } from '../core/errors/gateway-error.ts';
import type { Route } from './routes.ts';

/** The routes of one path. */
export interface Resource {
  readonly path: string;
  readonly routes: ReadonlyMap<string, Route>;
  /** Value of the `Allow` header. */
  readonly allow: string;
  /** Decisions 2: exempt from the Host check. */
  readonly probe: boolean;
  /** Reached by a browser's own navigation only. */
  readonly navigation: boolean;
}

export type Router = (path: string) => Resource | undefined;

export function createRouter(routes: readonly Route[]): Router {
  const byPath = new Map<string, Resource>();
  for (const { path } of routes) byPath.set(path, resourceOf(path, routes));
  return (path) => byPath.get(path);
}

/** @throws GatewayError `method_not_allowed`. HEAD is GET without a body. */
export function routeFor({ routes, allow }: Resource, method: string): Route {
  return (
    routes.get(method === 'HEAD' ? 'GET' : method) ??
    fail('method_not_allowed', { headers: { Allow: allow } })
  );
}

function resourceOf(path: string, all: readonly Route[]): Resource {
  const routes = all.filter((route) => route.path === path);
  const listed = routes.filter(({ unlisted }) => !unlisted).map(({ method }) => method);
  const allow = listed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return {
    path,
    routes: new Map(routes.map((route) => [route.method, route])),
    allow: allow.join(', '),
    probe: routes.some(({ probe }) => probe),
    navigation: routes.some(({ navigation }) => navigation),
  };
}
