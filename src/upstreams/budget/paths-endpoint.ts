// §25.2: what somebody who is logged in can connect to here, and what each list of tools costs their model.
import type { ProtectedEndpoint } from '../../endpoint/endpoint.ts';
import { createJsonReply } from '../../endpoint/message.ts';
import { JSONRPC } from '../../endpoint/render-error.ts';
import type { ClientOf } from '../../policy/rules/client-of.ts';
import type { UpstreamCatalogs } from '../catalog/upstream-catalogs.ts';
import { type ListCost, WARNED_TOKENS } from './measure-lists.ts';

/** `/mcp`, and the views of which the caller sees a tool. */
export const createPathsEndpoint = (
  baseUrl: string,
  measureListsOf: UpstreamCatalogs['measureListsOf'],
  findClientId: ClientOf,
): ProtectedEndpoint => ({
  kind: 'protected',
  method: 'GET',
  path: '/paths.json',
  errors: JSONRPC,
  limit: 'mcp',
  isForOwnPages: true,
  headers: { 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' },
  judge: ({ user }) => ({
    access: undefined,
    async run() {
      const costs = await measureListsOf({ user, clientId: await findClientId({ user }) });
      const shown = costs.filter(({ kind, tools }) => kind === 'all' || tools > 0);
      return createJsonReply(200, {
        warnedTokens: WARNED_TOKENS,
        paths: shown.map((cost) => describePath(cost, baseUrl)),
      });
    },
  }),
});

const describePath = ({ kind, name, title, ...cost }: ListCost, baseUrl: string) => ({
  url: kind === 'all' ? `${baseUrl}/mcp` : `${baseUrl}/mcp/${name}`,
  ...(title !== undefined && { title }),
  ...cost,
});
