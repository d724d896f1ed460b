// An error: a row of `catalogue` in src/errors/catalogue.ts, by the key that `fail('teapot')` names.
import type { ErrorRow } from '../../../src/errors/catalogue.ts';

export const teaErrors = {
  teapot: {
    status: 418,
    jsonrpc: { code: -32600, message: 'Teapot' },
    details: 'This gateway makes tea. Ask another one for coffee.',
  },
} satisfies Record<string, ErrorRow>;
