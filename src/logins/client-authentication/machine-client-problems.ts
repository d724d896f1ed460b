// §13.6: what `clients` of the configuration file need of the settings.

import type { Config } from '../../config/config.ts';
import type { Problem } from '../../config/problem.ts';
import { quote } from '../../platform/text.ts';
import type { MachineClient } from '../auth/machine-clients.ts';

/** Of a gateway that is about to serve. */
export function findMachineClientProblems(
  clients: readonly MachineClient[] = [],
  { server, oauth }: Pick<Config, 'server' | 'oauth'>,
): readonly Problem[] {
  const [first] = clients;
  if (first === undefined) return [];
  if (oauth.mode !== 'broker') {
    return [
      {
        place: first.place,
        message:
          'Only a gateway that issues tokens of its own has "clients"; this one has OAUTH_MODE=proxy, the default. Set OAUTH_MODE=broker, or remove "clients".',
      },
    ];
  }
  return clients.flatMap(({ place, resources = [] }) =>
    resources
      .filter((one) => !one.startsWith('/') && !isOwn(one, server.baseUrl))
      .map((one) => ({
        place,
        message: `The resource ${quote(one)} is not one of this gateway. It must begin with BASE_URL, which is ${server.baseUrl}, or be a path such as /mcp.`,
      })),
  );
}

const isOwn = (resource: string, baseUrl: string): boolean => {
  const path = resource.startsWith(baseUrl) ? resource.slice(baseUrl.length) : undefined;
  return path !== undefined && /^(\/?|\/(mcp(\/[A-Za-z0-9-]+)?|admin)\/?)$/.test(path);
};
