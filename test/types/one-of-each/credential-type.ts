// A type of credentials: each request is signed by a key of the gateway's own.
import { createHmac } from 'node:crypto';
import { defineCredentialType } from '../../../src/servers/credentials/credential-type.ts';

interface SignedAuth {
  readonly type: 'signed';
}

export const signed = defineCredentialType<SignedAuth>({
  type: 'signed',
  summary: 'a signature of each request.',
  members: [],
  required: [],
  whyNoOthers: 'the key is the gateway’s own',
  read: () => ({ type: 'signed' }),
  requirements: [],
  isOfCaller: false,
  open: () => ({
    openServer: ({ name }) => ({
      sign: (_caller, { method, url, body }) => ({
        authorization: createHmac('sha256', name)
          .update(`${method} ${url}\n`)
          .update(body)
          .digest('hex'),
      }),
    }),
  }),
});
