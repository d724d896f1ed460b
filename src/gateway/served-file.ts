// The configuration file that is served now.
import { listGuardServers } from '../catalog/plan.ts';
import type { ServedFile } from '../mcp/upstream/upstream-config.ts';
import { findFacts } from '../servers/transport/transports.ts';
import type { GatewayFile } from './configuration/gateway-file.ts';

/** `replace` is called once the servers are those of the file. */
export interface OpenServedFile extends ServedFile {
  replace(file: GatewayFile): void;
}

export function createServedFile(file: GatewayFile): OpenServedFile {
  let served = readFile(file);

  return {
    has: (name) => served.titles.has(name),
    getTitle: (name) => served.titles.get(name),
    listConnectionServers: () => served.connectionServers,
    listNamedClaims: () => served.namedClaims,
    replace(next) {
      served = readFile(next);
    },
  };
}

const readFile = (file: GatewayFile) => {
  const guards = listGuardServers(file);
  return {
    /** By the names of `/mcp/<name>`; undefined for a server, which has none. */
    titles: new Map<string, string | undefined>([
      ...file.servers
        .filter(({ name }) => !guards.includes(name))
        .map(({ name }) => [name, undefined] as const),
      ...(file.views ?? []).map(({ name, title }) => [name, title] as const),
    ]),
    connectionServers: file.servers.flatMap((server) => findFacts(server).connection ?? []),
    namedClaims: file.rules.flatMap(({ who }) =>
      who === 'everyone'
        ? []
        : [...Object.keys(who.claims ?? {}), ...(who.groups === undefined ? [] : ['groups'])],
    ),
  };
};
