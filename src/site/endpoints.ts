// §4.1, §19.2: what the pages know of this gateway, for programs.
import type { Endpoint } from '../endpoint/endpoint.ts';
import { createJsonReply } from '../endpoint/message.ts';
import { JSONRPC } from '../endpoint/render-error.ts';
import type { GetPublicTools } from './public-tools.ts';
import type { SiteFacts } from './site-facts.ts';

/** `getPublicTools` is undefined where strangers see none. */
export const createSiteEndpoints = (
  facts: SiteFacts,
  getPublicTools: GetPublicTools | undefined,
): readonly Endpoint[] => [
  {
    kind: 'open',
    method: 'GET',
    path: '/site.json',
    errors: JSONRPC,
    async handle() {
      const tools = await getPublicTools?.();
      return createJsonReply(200, { ...facts, tools }, { 'Cache-Control': 'public, max-age=60' });
    },
  },
];
