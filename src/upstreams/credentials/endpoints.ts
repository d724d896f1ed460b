// §18.6: where servers find the keys of the gateway's own tokens.
import type { Endpoint } from '../../endpoint/endpoint.ts';
import { createJsonReply } from '../../endpoint/message.ts';
import { JSONRPC } from '../../endpoint/render-error.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Identity } from './identity.ts';

/** `isUsed`: whether some server has `identity` now; without any there is no such document. */
export const createIdentityEndpoints = (
  identity: Pick<Identity, 'getKeySet'>,
  isUsed: () => boolean,
): readonly Endpoint[] => [
  {
    kind: 'open',
    method: 'GET',
    path: '/.well-known/jwks.json',
    errors: JSONRPC,
    async handle() {
      if (!isUsed()) fail('not_found');
      return createJsonReply(200, await identity.getKeySet(), {
        'Cache-Control': 'public, max-age=300',
      });
    },
  },
];
