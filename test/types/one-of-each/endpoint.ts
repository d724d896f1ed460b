// An endpoint for everybody that says how long tea is drawn.
import type { Endpoint } from '../../../src/http/endpoint/endpoint.ts';
import { createJsonReply } from '../../../src/http/endpoint/message.ts';
import { JSONRPC } from '../../../src/http/endpoint/render-error.ts';

export const createTeaEndpoint = (minutes: number): Endpoint => ({
  kind: 'open',
  method: 'GET',
  path: '/tea',
  errors: JSONRPC,
  handle: () => createJsonReply(200, { minutes }),
});
